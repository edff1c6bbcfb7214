import type { Origin } from "@keble-scraper/testkit";
import {
  ADMIT_ALL,
  type AdmitHop,
  type BodySink,
  createDirectTransport,
  type EgressLimits,
  type FetchOutcome,
  type FetchRequest,
  type Transport,
} from "../src/index.ts";
import type { Resolver } from "../src/dns/resolver.ts";
import { vetUrl, type VettedUrl } from "../src/policy/vet-url.ts";

/** The public address that every test name has, and that the rig's dial sends to the origin. */
export const PUBLIC_ADDRESS = "93.184.216.34";

/** Long enough for a busy machine, short enough to end a test. */
const PATIENT_LIMITS = { connectTimeoutMs: 10_000, responseTimeoutMs: 10_000, bodyIdleTimeoutMs: 10_000 };

/** For what is expected to run into them. */
export const SHORT_LIMITS = { connectTimeoutMs: 300, responseTimeoutMs: 300, bodyIdleTimeoutMs: 300 };

/** Answers names from a table, else the public address; counts its questions. */
export function createStubResolver(
  answers: Readonly<Record<string, readonly string[]>> = {},
): Resolver & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    resolve: (name) => {
      asked.push(name);
      return Promise.resolve({ ok: true, addresses: answers[name] ?? [PUBLIC_ADDRESS] });
    },
  };
}

export type Rig = AsyncDisposable & {
  readonly transport: Transport;
  readonly dialled: string[];
  get(url: string, overrides?: Partial<FetchRequest>, signal?: AbortSignal): Promise<Fetched>;
  fetchInto(url: string, sink: BodySink, signal: AbortSignal, overrides: Partial<FetchRequest>): Promise<FetchOutcome>;
};

/** An outcome with the body that its sink received. */
export type Fetched = { readonly outcome: FetchOutcome; readonly body: Buffer; readonly writes: number };

export type RigOptions = {
  readonly resolver?: Resolver;
  readonly limits?: Partial<EgressLimits>;
  readonly authorities?: readonly string[];
  /** Absent: every hop may go at once. */
  readonly admit?: AdmitHop;
  /** Where a vetted address is dialled instead; the default sends all to `origin`. */
  readonly dial?: (address: string, port: number) => { readonly host: string; readonly port: number };
};

/** A direct transport whose policy sees public addresses while its sockets go to `origin`. */
export function createRig(origin: Origin, options: RigOptions = {}): Rig {
  const dialled: string[] = [];
  const { admit = ADMIT_ALL } = options;
  const transport = createDirectTransport({
    resolver: options.resolver ?? createStubResolver(),
    limits: { ...PATIENT_LIMITS, ...options.limits },
    overrides: {
      dial(address, port) {
        dialled.push(address);
        return options.dial?.(address, port) ?? { host: "127.0.0.1", port: origin.port };
      },
      ...(options.authorities === undefined ? {} : { authorities: options.authorities }),
    },
  });
  return toRig(transport, dialled, admit);
}

/** A rig around any transport. */
export function toRig(transport: Transport, dialled: string[], admit: AdmitHop = ADMIT_ALL): Rig {
  return {
    transport,
    dialled,
    async get(url, overrides = {}, signal = new AbortController().signal) {
      const chunks: Buffer[] = [];
      const sink = {
        write(chunk: Buffer) {
          chunks.push(Buffer.from(chunk));
        },
      };
      const outcome = await transport.fetch(toRequest(url, overrides), sink, { signal, admit });
      return { outcome, body: Buffer.concat(chunks), writes: chunks.length };
    },
    fetchInto: (url, sink, signal, overrides) => transport.fetch(toRequest(url, overrides), sink, { signal, admit }),
    async [Symbol.asyncDispose]() {
      await transport.close(performance.now());
    },
  };
}

export function toRequest(url: string, overrides: Partial<FetchRequest> = {}): FetchRequest {
  return {
    url: vetted(url),
    method: "GET",
    headers: {},
    accept: "ANY_RESPONSE",
    contentTypes: null,
    maxBodyBytes: 2_000_000,
    callerId: "caller-a",
    robots: "IGNORE",
    deadline: performance.now() + 60_000,
    attemptLimitMs: 20_000,
    capture: "DOM",
    egress: { country: null, session: null },
    ...overrides,
  };
}

export function vetted(url: string): VettedUrl {
  const result = vetUrl(url);
  if (!result.ok) throw new Error(`${url}: ${result.reason}`);
  return result.url;
}
