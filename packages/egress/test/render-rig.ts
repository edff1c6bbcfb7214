import type { Origin } from "@keble-scraper/testkit";
import { ADMIT_ALL, type AdmitHop, type FetchRequest, type Transport } from "../src/index.ts";
import { createLocalRenderTransport, type LocalRenderOptions } from "../src/render/index.ts";
import { createStubResolver, type Fetched, toRequest } from "./rig.ts";

/** What a page may need on a machine where everybody else works, too. */
const PATIENT_LIMITS = { connectTimeoutMs: 30_000, responseTimeoutMs: 30_000, bodyIdleTimeoutMs: 30_000 };

/** A render transport whose policy sees public addresses while its sockets go where `dial` says: see `rig.ts`. */
export type RenderRig = AsyncDisposable & {
  readonly transport: Transport;
  /** Addresses that were dialled, with their ports. */
  readonly dialled: string[];
  render(url: string, overrides?: Partial<FetchRequest>, control?: RenderRigControl): Promise<Fetched>;
};

export type RenderRigControl = { readonly signal?: AbortSignal; readonly admit?: AdmitHop };

export type RenderRigOptions = Partial<LocalRenderOptions> & {
  readonly jobsMax?: number;
  readonly memoryBytesMax?: number;
  /** Where a vetted address is dialled instead; the default sends port 443 to `tls`, the rest to `origin`. */
  readonly dial?: (address: string, port: number) => { readonly host: string; readonly port: number };
  readonly tls?: Origin;
  readonly trustedKeys?: readonly string[];
};

/** `origin` answers for every name that resolves. */
export async function openRenderRig(origin: Origin, options: RenderRigOptions = {}): Promise<RenderRig> {
  const dialled: string[] = [];
  const { jobsMax = 1_000, memoryBytesMax = 8e9, tls = origin, trustedKeys = [], ...others } = options;
  const transport = await createLocalRenderTransport({
    browser: { executablePath: null, jobsMax, memoryBytesMax },
    resolver: createStubResolver(),
    overrides: {
      trustedKeys,
      dial(address, port) {
        dialled.push(`${address}:${port}`);
        return options.dial?.(address, port) ?? { host: "127.0.0.1", port: (port === 443 ? tls : origin).port };
      },
    },
    ...others,
    limits: { ...PATIENT_LIMITS, ...options.limits },
  });
  return {
    transport,
    dialled,
    async render(url, overrides = {}, control = {}) {
      const chunks: Buffer[] = [];
      const sink = {
        write(chunk: Buffer) {
          chunks.push(Buffer.from(chunk));
        },
      };
      const { signal = new AbortController().signal, admit = ADMIT_ALL } = control;
      const outcome = await transport.fetch(toRequest(url, overrides), sink, { signal, admit });
      return { outcome, body: Buffer.concat(chunks), writes: chunks.length };
    },
    async [Symbol.asyncDispose]() {
      await transport.close(performance.now());
    },
  };
}
