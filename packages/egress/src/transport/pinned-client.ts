import type { Socket } from "node:net";
import type { UpstreamFailure } from "@keble-scraper/contract";
import type { Resolver } from "../dns/resolver.ts";
import type { AddressPolicy } from "../policy/classify-address.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import { Connection } from "./connection.ts";
import { connectionKey, type ConnectionScope, createConnectionPool } from "./connection-pool.ts";
import { createDirectDialer } from "./dial.ts";
import type { DialOverride } from "./dial-address.ts";
import type { DialContext, Dialer } from "./dialer.ts";
import type { EgressLimits } from "./egress-limits.ts";
import {
  exchange,
  type ExchangeProgress,
  type ExchangeRequest,
  type ExchangeResult,
  type HeadVerdict,
} from "./exchange.ts";
import type { FailureKind } from "./failure-kind.ts";
import type { FetchRequest } from "./fetch-request.ts";
import type { HopTimings } from "./hop-timings.ts";
import type { ResponseHead } from "./response-head.ts";
import { destroySocket } from "./secure-socket.ts";
import type { SocketMeter } from "./socket-meter.ts";
import { createTargetResolver, type ResolvedTarget } from "./resolve-target.ts";
import type { Stop } from "./stop.ts";

/**
 * One request to one vetted URL. `meter` counts the attempt's sockets; null or absent: nobody pays for their bytes. `egress`
 * is for the dialler; absent: anywhere.
 */
export type PinnedRequest = {
  readonly scope: ConnectionScope;
  readonly egress?: FetchRequest["egress"];
  readonly meter?: SocketMeter | null;
  readonly url: VettedUrl;
  readonly request: ExchangeRequest;
  readonly stop: Stop;
  readonly progress: ExchangeProgress;
  readonly timings: HopTimings;
  readonly onHead: (head: ResponseHead) => HeadVerdict;
};

/**
 * `REFUSED`: the name leads to an address that may not be dialled; nothing was dialled. `block` is for logs only.
 * `ROUTE_FAILED`: the route failed before it reached the target; nothing of the request was sent.
 */
export type PinnedResult =
  | { readonly kind: "ROUTE_FAILED"; readonly failure: UpstreamFailure }
  | { readonly kind: "DONE"; readonly head: ResponseHead }
  | { readonly kind: "FAILED"; readonly failure: FailureKind; readonly nativeCode: string | null }
  | { readonly kind: "REFUSED"; readonly block: string; readonly hint: string | null }
  | { readonly kind: "STOPPED" };

/** Sends requests over connections to addresses that were vetted for exactly that request. Owns its pool. */
export type PinnedClient = {
  request(options: PinnedRequest): Promise<PinnedResult>;
  /** Sockets that are being dialled, in use or at rest. */
  sockets(): number;
  /** Closes what rests and lets nothing rest from here on. */
  drain(): void;
  /** Closes every socket; resolves when they are closed. */
  destroy(): Promise<void>;
};

/** Tests send sockets elsewhere and trust other authorities; production has neither. */
export type PinnedClientOverrides = { readonly dial?: DialOverride; readonly authorities?: readonly string[] };

/**
 * What a client is made of. `policy` judges the answers of names; literals were judged with their URL. `dial`: how its
 * connections are made, whoever asks; absent: to the target's own address. `overrides` are for the absent one.
 */
export type PinnedClientOptions = {
  readonly resolver: Resolver;
  readonly policy: AddressPolicy;
  readonly limits: EgressLimits;
  readonly dial?: Dialer | undefined;
  readonly overrides?: PinnedClientOverrides | undefined;
};

/** A client with a pool of its own. */
export function createPinnedClient(options: PinnedClientOptions): PinnedClient {
  const { limits, overrides = {} } = options;
  const sockets = new Set<Socket>();
  const pool = createConnectionPool(limits.idleSocketsMax);
  const dial = options.dial ?? createDirectDialer(overrides);
  const resolveTarget = createTargetResolver(options);

  const contextOf = ({ egress = ANY_EGRESS, meter }: PinnedRequest): DialContext => ({
    egress,
    track(raw) {
      sockets.add(raw);
      raw.once("close", () => sockets.delete(raw));
      meter?.track(raw);
    },
  });

  const open = async (hop: PinnedRequest, addresses: readonly string[]): Promise<OpenedHop> => {
    const { url, stop, timings } = hop;
    const startedAt = performance.now();
    const tls = url.protocol === "https:" ? { name: url.name } : null;
    const target = { addresses, name: url.name, port: url.port, reach: url.reach, tls };
    const dialled = await dial(target, stop, limits.connectTimeoutMs, contextOf(hop));
    timings.connectMs = (timings.connectMs ?? 0) + performance.now() - startedAt;
    if (dialled.ok) {
      const key = connectionKey(hop.scope, url, dialled.address);
      if (hop.meter != null) dialled.socket.on("readable", hop.meter.check);
      return { ok: true, connection: new Connection(key, dialled.socket, limits) };
    }
    if (dialled.kind === "ROUTE") return { ok: false, result: { kind: "ROUTE_FAILED", failure: dialled.failure } };
    if (dialled.kind === "REFUSED") {
      return { ok: false, result: { kind: "REFUSED", block: "named by the proxy", hint: null } };
    }
    if (dialled.kind === "STOPPED") return { ok: false, result: { kind: "STOPPED" } };
    return { ok: false, result: { kind: "FAILED", failure: dialled.kind, nativeCode: dialled.nativeCode } };
  };

  const takeIdle = (hop: PinnedRequest, addresses: readonly string[]): Connection | null => {
    if (hop.scope.reuse === "NEVER") return null;
    for (const address of addresses) {
      const connection = pool.take(connectionKey(hop.scope, hop.url, address));
      if (connection !== null) return connection;
    }
    return null;
  };

  const run = async (hop: PinnedRequest, connection: Connection): Promise<ExchangeResult> => {
    const result = await exchange({ connection, limits, ...hop });
    if (result.kind !== "DONE" || !result.isReusable) return result;
    if (hop.scope.reuse === "NEVER") connection.destroy();
    else pool.put(connection);
    return result;
  };

  return {
    async request(hop) {
      const target = await resolveTarget(hop.url, hop.stop, hop.timings);
      if (!target.ok) return toUnresolved(target);
      // A resting connection may be gone before it was used; then nothing was sent, and the next one or a new one serves.
      for (let idle = takeIdle(hop, target.addresses); idle !== null; idle = takeIdle(hop, target.addresses)) {
        const result = await run(hop, idle);
        if (result.kind !== "NOT_SENT") return result;
      }
      const opened = await open(hop, target.addresses);
      if (!opened.ok) return opened.result;
      const result = await run(hop, opened.connection);
      return result.kind === "NOT_SENT" ? { kind: "FAILED", failure: "EMPTY_RESPONSE", nativeCode: null } : result;
    },
    sockets: () => [...sockets].filter((socket) => !socket.destroyed).length,
    drain() {
      pool.close();
    },
    async destroy() {
      pool.close();
      const closed = [...sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
      for (const socket of sockets) destroySocket(socket);
      await Promise.all(closed);
    },
  };
}

const ANY_EGRESS: FetchRequest["egress"] = { country: null, session: null };

type OpenedHop =
  | { readonly ok: true; readonly connection: Connection }
  | { readonly ok: false; readonly result: PinnedResult };

function toUnresolved(target: Extract<ResolvedTarget, { readonly ok: false }>): PinnedResult {
  if (target.kind === "REFUSED") return { kind: "REFUSED", block: target.block, hint: target.hint };
  if (target.kind === "STOPPED") return { kind: "STOPPED" };
  return { kind: "FAILED", failure: target.kind, nativeCode: target.nativeCode };
}
