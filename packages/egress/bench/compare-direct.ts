import { Agent, request as undiciRequest } from "undici";
import {
  ADMIT_ALL,
  createCachingResolver,
  createDirectTransport,
  detectBlockPage,
  detectCharset,
  type FetchRequest,
  sniffType,
  vetAddresses,
  type VettedUrl,
  vetUrl,
} from "@keble-scraper/egress";
import { startLocalOrigin } from "./local-origin.ts";

/**
 * The cost of the safe path: our DIRECT transport beside plain `undici.request`, on the same local origin, which runs in a
 * process of its own, over kept connections. Rounds of all ways take turns, so that what else the machine does falls on all.
 *
 *   npx tsc -b packages/egress && npm run bench:direct -w @keble-scraper/egress -- [seconds per body size] [at once]
 *
 * It measures what was built (`dist`): a run of the sources would count what the loader adds to every function, too.
 * Prints a JSON line per body size: requests a second and CPU microseconds of this process per request, and for each way of
 * ours how much of plain's it reaches. `text`: the same page, but not as HTML, so that no wall's page is looked for.
 * `vetted`: the URL read and vetted for each request, too, as a job's is. Then a line of what the parts cost by themselves.
 */
const [secondsPerSize = 12, atOnce = 32] = process.argv.slice(2).map(Number);

const SIZES = [1_024, 10_240, 1_048_576] as const;
const ROUND_MS = 1_000;
const WAYS = ["plain", "direct", "text", "vetted"] as const;

type Way = (typeof WAYS)[number];
type Total = { requests: number; seconds: number; cpuMicros: number };

const origin = await startLocalOrigin();
const agent = new Agent({ connections: atOnce, pipelining: 1 });
const transport = createDirectTransport({
  resolver: createCachingResolver({
    resolve: () => Promise.resolve({ ok: true, addresses: ["93.184.216.34"], ttlMs: 60_000 }),
  }),
  overrides: { dial: () => ({ host: "127.0.0.1", port: origin.port }) },
});

try {
  for (const bytes of SIZES) {
    const once = openWays(bytes);
    const totals = { plain: emptyTotal(), direct: emptyTotal(), text: emptyTotal(), vetted: emptyTotal() };
    for (const way of WAYS) await round(once[way], ROUND_MS);
    for (let spentMs = 0; spentMs < secondsPerSize * 1_000; spentMs += WAYS.length * ROUND_MS) {
      for (const way of WAYS) add(totals[way], await round(once[way], ROUND_MS));
    }
    const plain = report(totals.plain);
    const line: Record<string, unknown> = { bytes, atOnce, plain };
    for (const way of ["direct", "text", "vetted"] as const) {
      const own = report(totals[way]);
      const ofPlain = {
        perSecond: rounded(own.perSecond / plain.perSecond),
        cpu: rounded(plain.cpuMicros / own.cpuMicros),
      };
      line[way] = { ...own, ofPlain };
    }
    console.log(JSON.stringify(line));
  }
  console.log(JSON.stringify({ partMicros: await measureParts() }));
} finally {
  await transport.close(performance.now());
  await agent.destroy();
  origin.stop();
}

function openWays(bytes: number): Readonly<Record<Way, () => Promise<void>>> {
  const page = `http://origin.example.com/${bytes}`;
  const [html, text] = [vetted(page), vetted(`${page}?text`)];
  return {
    plain: async () => {
      const { body } = await undiciRequest(`http://127.0.0.1:${origin.port}/${bytes}`, { dispatcher: agent });
      for await (const _ of body);
    },
    direct: () => fetchDirectly(html),
    text: () => fetchDirectly(text),
    vetted: () => fetchDirectly(vetted(page)),
  };
}

async function fetchDirectly(url: VettedUrl): Promise<void> {
  const request: FetchRequest = {
    url,
    method: "GET",
    headers: {},
    accept: "SUCCESS_ONLY",
    contentTypes: null,
    maxBodyBytes: 10_485_760,
    callerId: "bench",
    robots: "IGNORE",
    deadline: performance.now() + 60_000,
    attemptLimitMs: 60_000,
    capture: "DOM",
    egress: { country: null, session: null },
  };
  const { signal } = new AbortController();
  const outcome = await transport.fetch(request, { write() {} }, { signal, admit: ADMIT_ALL });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.failure));
}

function vetted(text: string): VettedUrl {
  const result = vetUrl(text);
  if (!result.ok) throw new Error(result.reason);
  return result.url;
}

/** Parts of the safe path that plain undici has none of, each alone, on a page of 10 KiB. */
async function measureParts(): Promise<Readonly<Record<string, number>>> {
  const sample = Buffer.alloc(10_240, "<p>some words of text</p>");
  const declared = "text/html; charset=utf-8";
  const headers = { "content-type": declared, date: "Sun, 06 Nov 1994 08:49:37 GMT" };
  const parts: Readonly<Record<string, () => unknown>> = {
    vetUrl: () => vetted("http://origin.example.com/10240"),
    vetAddresses: () => vetAddresses(["93.184.216.34"]),
    detectBlockPage: () => detectBlockPage({ httpStatus: 200, headers, sample }),
    sniffType: () => sniffType(sample, declared),
    detectCharset: () => detectCharset(sample, declared),
  };
  const micros: Record<string, number> = {};
  for (const [name, part] of Object.entries(parts)) {
    for (let index = 0; index < 2_000; index += 1) await part();
    const cpu = process.cpuUsage();
    for (let index = 0; index < 20_000; index += 1) await part();
    const used = process.cpuUsage(cpu);
    micros[name] = Math.round((used.user + used.system) / 200) / 100;
  }
  return micros;
}

async function round(once: () => Promise<void>, forMs: number): Promise<Total> {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  let requests = 0;
  const work = async (): Promise<void> => {
    while (performance.now() - startedAt < forMs) {
      await once();
      requests += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const used = process.cpuUsage(cpu);
  return { requests, seconds: (performance.now() - startedAt) / 1_000, cpuMicros: used.user + used.system };
}

function emptyTotal(): Total {
  return { requests: 0, seconds: 0, cpuMicros: 0 };
}

function add(total: Total, part: Total): void {
  total.requests += part.requests;
  total.seconds += part.seconds;
  total.cpuMicros += part.cpuMicros;
}

function report({ requests, seconds, cpuMicros }: Total): { readonly perSecond: number; readonly cpuMicros: number } {
  return { perSecond: Math.round(requests / seconds), cpuMicros: Math.round(cpuMicros / requests) };
}

function rounded(ratio: number): number {
  return Math.round(ratio * 100) / 100;
}
