import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";

/** What the server does with one question. `answers` may be empty (NODATA). `ttl`: seconds; absent: 0. */
export type DnsBehaviour =
  | { readonly answers: readonly string[]; readonly cname?: string; readonly ttl?: number; readonly cnameTtl?: number }
  | "NXDOMAIN"
  | "SERVFAIL"
  | "REFUSED"
  | "SILENT";

/** Answers by `A name` or `AAAA name`; a function gets the count of earlier questions. Anything else is NXDOMAIN. */
export type DnsZone = Readonly<Record<string, DnsBehaviour | ((earlier: number) => DnsBehaviour)>>;

const TYPES: Readonly<Record<number, string>> = { 1: "A", 28: "AAAA" };
const CODES = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 } as const;
/** What c-ares announces by EDNS; longer answers go by TCP. */
const UDP_BYTES_MAX = 1232;

/** What a zone answers to a question in wire format; null: nothing. `questions` lists what was asked, in order. */
export function createDnsReplies(
  zone: DnsZone,
  onQuestion: (question: string) => void = () => {},
): { readonly questions: readonly string[]; reply(query: Buffer): Buffer | null } {
  const questions: string[] = [];
  return {
    questions,
    reply(query) {
      const { question, end } = readQuestion(query);
      const earlier = questions.filter((asked) => asked === question).length;
      questions.push(question);
      onQuestion(question);
      const entry = zone[question] ?? "NXDOMAIN";
      const behaviour = typeof entry === "function" ? entry(earlier) : entry;
      return behaviour === "SILENT" ? null : writeReply(query, end, behaviour);
    },
  };
}

/** A small authoritative DNS server on a loopback port, by UDP and TCP. `questions` lists what was asked, in order. */
export async function openDnsServer(zone: DnsZone): Promise<{
  readonly server: string;
  readonly questions: readonly string[];
  readonly asked: (question: string) => Promise<void>;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
}> {
  const watchers = new Map<string, () => void>();
  const { questions, reply } = createDnsReplies(zone, (question) => watchers.get(question)?.());
  const sockets = new Set<Socket>();
  const tcp = createServer((socket) => {
    sockets.add(socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket)));
    socket.on("data", (data) => {
      const answer = reply(data.subarray(2));
      if (answer === null) return;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(answer.length);
      socket.write(Buffer.concat([length, answer]));
    });
  });
  await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve));
  const address = tcp.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  const udp = createSocket("udp4");
  udp.on("message", (query, peer) => {
    const answer = reply(query);
    if (answer === null) return;
    if (answer.length <= UDP_BYTES_MAX) udp.send(answer, peer.port, peer.address);
    else udp.send(truncated(answer, readQuestion(query).end), peer.port, peer.address);
  });
  await new Promise<void>((resolve) => udp.bind(port, "127.0.0.1", resolve));
  return {
    server: `127.0.0.1:${port}`,
    questions,
    asked: (question) =>
      questions.includes(question) ? Promise.resolve() : new Promise((resolve) => void watchers.set(question, resolve)),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => udp.close(resolve));
      await new Promise<void>((resolve) => void tcp.close(() => resolve()));
    },
  };
}

function readQuestion(query: Buffer): { question: string; end: number } {
  const labels: string[] = [];
  let offset = 12;
  for (let length = query[offset] ?? 0; length > 0; length = query[offset] ?? 0) {
    labels.push(query.toString("latin1", offset + 1, offset + 1 + length).toLowerCase());
    offset += 1 + length;
  }
  const type = query.readUInt16BE(offset + 1);
  return { question: `${TYPES[type] ?? type} ${labels.join(".")}`, end: offset + 5 };
}

function writeReply(query: Buffer, end: number, behaviour: Exclude<DnsBehaviour, "SILENT">): Buffer {
  const head = Buffer.from(query.subarray(0, end));
  const code = typeof behaviour === "string" ? CODES[behaviour] : 0;
  head.writeUInt16BE(0x8180 | code, 2); // response, recursion desired and available
  const records = typeof behaviour === "string" ? [] : writeRecords(behaviour);
  head.writeUInt16BE(records.length, 6);
  head.writeUInt32BE(0, 8);
  return Buffer.concat([head, ...records]);
}

function writeRecords(behaviour: Exclude<DnsBehaviour, string>): Buffer[] {
  const { answers, cname, ttl = 0, cnameTtl = ttl } = behaviour;
  const question = Buffer.from([0xc0, 0x0c]); // a pointer to the name that was asked for
  if (cname === undefined) return answers.map((answer) => writeRecord(question, answer, ttl));
  const alias = writeName(cname);
  return [record(question, 5, alias, cnameTtl), ...answers.map((answer) => writeRecord(alias, answer, ttl))];
}

function writeRecord(name: Buffer, answer: string, ttl: number): Buffer {
  if (!answer.includes(":")) return record(name, 1, Buffer.from(answer.split(".").map(Number)), ttl);
  const groups = new URL(`http://[${answer}]/`).hostname.slice(1, -1).split("::");
  const [left = [], right = []] = groups.map((half) => (half === "" ? [] : half.split(":")));
  const hextets = [...left, ...Array.from<string>({ length: 8 - left.length - right.length }).fill("0"), ...right];
  return record(name, 28, Buffer.from(hextets.map((hextet) => hextet.padStart(4, "0")).join(""), "hex"), ttl);
}

function record(name: Buffer, type: number, data: Buffer, ttl: number): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2); // class IN
  head.writeUInt32BE(ttl, 4);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([name, head, data]);
}

function writeName(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label, "latin1")]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function truncated(answer: Buffer, end: number): Buffer {
  const head = Buffer.from(answer.subarray(0, end));
  head.writeUInt16BE(head.readUInt16BE(2) | 0x0200, 2);
  head.writeUInt16BE(0, 6);
  return head;
}
