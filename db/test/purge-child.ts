import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { purgeBatch } from "../src/commands/retention/index.ts";
import { createDatabase } from "../src/database.ts";

/**
 * A purger in a process of its own. For each line of its input it purges one batch of jobs and tells its answer, a fault as
 * `{ "fault": … }`. The end of its input ends it. It pauses nowhere in a batch: a test stops or kills it.
 */
const [url = "", applicationName = "", rowsPerMinute = ""] = process.argv.slice(2);
const database = createDatabase({
  url,
  applicationName,
  commandConnections: 1,
  readConnections: 1,
  statementTimeoutMs: 2_000,
});
const tell = (what: object) => writeSync(1, `${JSON.stringify(what)}\n`);
const options = { kind: "jobs", batch: 20, rowsPerMinute: Number(rowsPerMinute), auditDays: 400, since: null } as const;
for await (const _line of createInterface(process.stdin)) {
  try {
    tell(await purgeBatch(database.commands, options));
  } catch (error) {
    tell({ fault: String(error) });
  }
}
await database.stop(performance.now() + 1_000);
