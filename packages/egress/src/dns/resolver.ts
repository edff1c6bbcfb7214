import type { LookupAddress } from "node:dns";
import { promises as dns } from "node:dns";
import { createCachingResolver } from "./caching-resolver.ts";
import { gatherAnswers } from "./gather-answers.ts";
import type { AddressRecord } from "./merge-answers.ts";

/** A name's DNS failure: no such name, no address, the server failed, no answer in time. */
export type DnsFailureKind = "dns_not_found" | "dns_no_address" | "dns_servfail" | "dns_timeout";

/**
 * `addresses` are all answers, A before AAAA, not vetted yet and never empty. `ttlMs`: how long they may be believed, from
 * when they were asked for; absent: not at all. `nativeCode` is the resolver's own code, for logs. An aborted signal is no
 * outcome: `resolve` rejects with its reason.
 */
export type ResolveOutcome =
  | { readonly ok: true; readonly addresses: readonly string[]; readonly ttlMs?: number }
  | { readonly ok: false; readonly kind: DnsFailureKind; readonly nativeCode: string };

/**
 * Resolves absolute names (no trailing dot, no search list). `recall`: an answer that may still be believed, at once; null
 * when it has to be asked for. Absent: nothing is remembered.
 */
export type Resolver = {
  readonly recall?: (name: string) => ResolveOutcome | null;
  readonly resolve: (name: string, options: { readonly signal: AbortSignal }) => Promise<ResolveOutcome>;
};

/**
 * - `servers`: `ip` or `ip:port`; absent means those of the system.
 * - `timeoutMs`: for one whole resolve, both questions and all retries; absent means 2,000.
 * - `systemNames`: names that the system resolver answers (hosts file, container names), because an operator listed them.
 *   They are vetted and pinned like others, and never remembered.
 */
export type ResolverOptions = {
  readonly servers?: readonly string[];
  readonly timeoutMs?: number;
  readonly systemNames?: ReadonlySet<string>;
};

/** For one whole resolve, both questions and all retries. */
export const DNS_TIMEOUT_MS = 2_000;

/**
 * A resolver that never waits longer than its timeout and leaves no question open when nobody waits for it. One A and one
 * AAAA question per name; their answers are remembered as `createCachingResolver` says.
 */
export function createResolver(options: ResolverOptions = {}): Resolver {
  const timeoutMs = options.timeoutMs ?? DNS_TIMEOUT_MS;
  return createCachingResolver({
    async resolve(name, { signal }) {
      signal.throwIfAborted();
      if (options.systemNames?.has(name) === true) return gatherAnswers([lookUp(name)], timeoutMs, signal, () => {});
      // c-ares doubles its timeout with each try: a third and then two thirds make up our own limit.
      const resolver = new dns.Resolver({ timeout: Math.max(1, Math.floor(timeoutMs / 3)), tries: 2 });
      if (options.servers !== undefined) resolver.setServers(options.servers);
      // A trailing dot makes the name absolute: no search list, whatever the system's options say.
      const questions = [resolver.resolve4(`${name}.`, { ttl: true }), resolver.resolve6(`${name}.`, { ttl: true })];
      return gatherAnswers(questions, timeoutMs, signal, () => {
        resolver.cancel();
      });
    },
  });
}

/** The system says no TTL. */
async function lookUp(name: string): Promise<AddressRecord[]> {
  const found: LookupAddress[] = await dns.lookup(name, { all: true, verbatim: true });
  return found.map(({ address }) => ({ address, ttl: 0 }));
}
