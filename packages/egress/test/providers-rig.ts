import type { CloudflareApiServer, UnlockerApiServer } from "@keble-scraper/testkit";
import {
  ADMIT_ALL,
  type AdmitHop,
  type BodySink,
  createCloudflareRenderTransport,
  createUnlockerTransport,
  type FetchOutcome,
  type EgressLimits,
  type FetchRequest,
  type Hop,
  type PinnedClientOverrides,
  type Resolver,
  type Transport,
} from "../src/index.ts";
import { createStubResolver, toRequest } from "./rig.ts";

/** A URL that every test asks the providers for. */
export const PAGE = "https://shop.example.com/p/1?a=b";

export type ProviderRig = AsyncDisposable & {
  readonly transport: Transport;
  fetchInto(url: string, sink: BodySink, signal: AbortSignal, overrides?: Partial<FetchRequest>): Promise<FetchOutcome>;
  get(
    url?: string,
    overrides?: Partial<FetchRequest>,
    control?: { readonly signal?: AbortSignal; readonly admit?: AdmitHop },
  ): Promise<{ readonly outcome: FetchOutcome; readonly body: Buffer; readonly writes: number }>;
};

type RigOptions = {
  readonly limits?: Partial<EgressLimits>;
  readonly url?: string;
  readonly key?: string;
  readonly overrides?: PinnedClientOverrides;
  readonly resolver?: Resolver;
};

/** The transport of UNLOCKER against its stand-in. */
export function createUnlockerRig(
  api: Pick<UnlockerApiServer, "url" | "apiKey" | "zone">,
  options: RigOptions & { readonly zone?: string } = {},
): ProviderRig {
  return toRig(
    createUnlockerTransport({
      api: { url: options.url ?? api.url, apiKey: options.key ?? api.apiKey, zone: options.zone ?? api.zone },
      resolver: options.resolver ?? createStubResolver(),
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      ...(options.overrides === undefined ? {} : { overrides: options.overrides }),
    }),
  );
}

/** The transport of CLOUDFLARE_RENDER against its stand-in. */
export function createCloudflareRig(
  api: Pick<CloudflareApiServer, "url" | "accountId" | "apiToken">,
  options: RigOptions = {},
): ProviderRig {
  return toRig(
    createCloudflareRenderTransport({
      api: { url: options.url ?? api.url, accountId: api.accountId, apiToken: options.key ?? api.apiToken },
      resolver: options.resolver ?? createStubResolver(),
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      ...(options.overrides === undefined ? {} : { overrides: options.overrides }),
    }),
  );
}

/** The body of a call, parsed. */
export function bodyOf(server: Pick<UnlockerApiServer, "calls">, index = 0): Record<string, unknown> {
  return JSON.parse(server.calls[index]!.body.toString("utf8")) as Record<string, unknown>;
}

/** For an outcome that the lines before have ruled out. */
export function never(): never {
  throw new Error("this outcome was not to be");
}

/** Everything is let go, and written down. */
export function watching(): { readonly admit: AdmitHop; readonly hops: Hop[]; readonly done: () => number } {
  const hops: Hop[] = [];
  let done = 0;
  return {
    hops,
    done: () => done,
    admit: (hop) => {
      hops.push(hop);
      return Promise.resolve({
        kind: "GO",
        done() {
          done += 1;
        },
      });
    },
  };
}

function toRig(transport: Transport): ProviderRig {
  return {
    transport,
    fetchInto: (url, sink, signal, overrides = {}) =>
      transport.fetch(toRequest(url, overrides), sink, { signal, admit: ADMIT_ALL }),
    async get(url = PAGE, overrides = {}, { signal = new AbortController().signal, admit = ADMIT_ALL } = {}) {
      const chunks: Buffer[] = [];
      const sink = {
        write(chunk: Buffer) {
          chunks.push(Buffer.from(chunk));
        },
      };
      const outcome = await transport.fetch(toRequest(url, overrides), sink, { signal, admit });
      return { outcome, body: Buffer.concat(chunks), writes: chunks.length };
    },
    async [Symbol.asyncDispose]() {
      await transport.close(performance.now());
    },
  };
}
