import { createInterface } from "node:readline";
import { createLocalStore } from "../src/index.ts";

/**
 * A process that claims a prefix each time it is told one, on its standard input, and says whose mark it is then. Arguments:
 * directory, what it calls itself, how many prefixes there will be.
 */
const [directory = "", name = "", rounds = ""] = process.argv.slice(2);
const never = new AbortController().signal;
const stores = new Map(
  Array.from({ length: Number(rounds) }, (_, round) => `p${String(round)}`).map((prefix) => [
    prefix,
    createLocalStore({ directory, prefix, fsync: "OFF" }),
  ]),
);
for (const store of stores.values()) await store.start(never);
process.stdout.write("ready\n");
for await (const prefix of createInterface({ input: process.stdin })) {
  process.stdout.write(`${(await stores.get(prefix)?.claimOwner(name)) ?? "no such prefix"}\n`);
}
