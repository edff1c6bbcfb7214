import type { DnsFailureKind, ResolveOutcome } from "./resolver.ts";

/** An address with its record's TTL in seconds; the smallest of a chain of aliases where the resolver says so. */
export type AddressRecord = { readonly address: string; readonly ttl: number };

/** What came of one question. `nativeCode`: the resolver's own, in c-ares' words. */
export type Answer = { readonly records: readonly AddressRecord[] } | { readonly nativeCode: string };

/**
 * One outcome of the questions for a name's addresses. Any address is a success, whatever happened to the other question;
 * but then the answer is not to be remembered unless the other one was answered too: what it would have said is not known.
 */
export function mergeAnswers(answers: readonly Answer[]): ResolveOutcome {
  const records = answers.flatMap((answer) => ("records" in answer ? answer.records : []));
  const kinds = answers.flatMap((answer) => ("records" in answer ? [] : [kindOf(answer.nativeCode)]));
  if (records.length > 0) {
    const isWhole = kinds.every((kind) => kind === "dns_no_address" || kind === "dns_not_found");
    const ttlMs = isWhole ? records.reduce((least, { ttl }) => Math.min(least, ttl), Infinity) * 1_000 : 0;
    return { ok: true, addresses: records.map(({ address }) => address), ...(ttlMs > 0 ? { ttlMs } : {}) };
  }
  const codes = answers.map((answer) => ("records" in answer ? "ENODATA" : answer.nativeCode));
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
