import type { LookupAddress } from "node:dns";
import { promises as dns } from "node:dns";

/** A name's DNS failure: no such name, no address, the server failed, no answer in time. */
export type DnsFailureKind = "dns_not_found" | "dns_no_address" | "dns_servfail" | "dns_timeout";

/**
 * `addresses` are all answers, A before AAAA, not vetted yet and never empty. `nativeCode` is the resolver's own code, for
 * logs. An aborted signal is no outcome: `resolve` rejects with its reason.
 */
export type ResolveOutcome =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly kind: DnsFailureKind; readonly nativeCode: string };

/** Resolves absolute names (no trailing dot, no search list). One A and one AAAA question per call; nothing is cached. */
export type Resolver = {
  readonly resolve: (name: string, options: { readonly signal: AbortSignal }) => Promise<ResolveOutcome>;
};

/**
 * - `servers`: `ip` or `ip:port`; absent means those of the system.
 * - `timeoutMs`: for one whole resolve, both questions and all retries; absent means 2,000.
 * - `systemNames`: names that the system resolver answers (hosts file, container names), because an operator listed them.
 *   They are vetted and pinned like others.
 */
export type ResolverOptions = {
  readonly servers?: readonly string[];
  readonly timeoutMs?: number;
  readonly systemNames?: ReadonlySet<string>;
};

const TIMEOUT_MS = 2_000;

/** A resolver that never waits longer than its timeout and leaves no question open when its signal aborts. */
export function createResolver(options: ResolverOptions = {}): Resolver {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  return {
    async resolve(name, { signal }) {
      signal.throwIfAborted();
      if (options.systemNames?.has(name) === true) return gather([lookUp(name)], timeoutMs, signal, () => {});
      // c-ares doubles its timeout with each try: a third and then two thirds make up our own limit.
      const resolver = new dns.Resolver({ timeout: Math.max(1, Math.floor(timeoutMs / 3)), tries: 2 });
      if (options.servers !== undefined) resolver.setServers(options.servers);
      // A trailing dot makes the name absolute: no search list, whatever the system's options say.
      const questions = [resolver.resolve4(`${name}.`), resolver.resolve6(`${name}.`)];
      return gather(questions, timeoutMs, signal, () => {
        resolver.cancel();
      });
    },
  };
}

async function lookUp(name: string): Promise<string[]> {
  const found: LookupAddress[] = await dns.lookup(name, { all: true, verbatim: true });
  return found.map(({ address }) => address);
}

/**
 * Waits for all questions, at most `timeoutMs`; what was answered by then counts. On timeout and abort `cancel` ends
 * what is still open.
 */
function gather(
  questions: readonly Promise<string[]>[],
  timeoutMs: number,
  signal: AbortSignal,
  cancel: () => void,
): Promise<ResolveOutcome> {
  const answers: Answer[] = questions.map(() => ({ nativeCode: "ETIMEOUT" }));
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    const onTimeout = (): void => {
      settle();
      resolve(merge(answers));
      cancel();
    };
    const onAbort = (): void => {
      settle();
      reject(signal.reason as Error);
      cancel();
    };
    const timer = setTimeout(onTimeout, timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    const watched = questions.map(async (question, index) => {
      answers[index] = await answerOf(question);
    });
    void Promise.all(watched).then(() => {
      settle();
      resolve(merge(answers));
    });
  });
}

type Answer = { readonly addresses: readonly string[] } | { readonly nativeCode: string };

async function answerOf(question: Promise<string[]>): Promise<Answer> {
  try {
    return { addresses: await question };
  } catch (error) {
    return { nativeCode: codeOf(error) };
  }
}

/** Any address is a success, whatever happened to the other question. */
function merge(answers: readonly Answer[]): ResolveOutcome {
  const addresses = answers.flatMap((answer) => ("addresses" in answer ? answer.addresses : []));
  if (addresses.length > 0) return { ok: true, addresses };
  const codes = answers.map((answer) => ("addresses" in answer ? "ENODATA" : answer.nativeCode));
  const ranked = codes.map((code) => ({ kind: kindOf(code), nativeCode: code }));
  const worst = KINDS.map((kind) => ranked.find((entry) => entry.kind === kind)).find((entry) => entry !== undefined);
  return { ok: false, ...(worst ?? { kind: "dns_no_address", nativeCode: "ENODATA" }) };
}

/** The most telling first: one NXDOMAIN settles the name, one silent question leaves it open. */
const KINDS = ["dns_not_found", "dns_timeout", "dns_servfail", "dns_no_address"] as const;

function kindOf(code: string): DnsFailureKind {
  switch (code) {
    case "ENOTFOUND":
    case "ENONAME":
    case "EBADNAME":
      return "dns_not_found";
    case "ENODATA":
      return "dns_no_address";
    case "ETIMEOUT":
    case "ECANCELLED":
    case "EAI_AGAIN":
      return "dns_timeout";
    default:
      return "dns_servfail";
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "EUNKNOWN";
}
