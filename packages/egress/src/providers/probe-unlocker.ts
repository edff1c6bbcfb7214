import type { UpstreamFailure } from "@keble-scraper/contract";
import { isObject, parseObject } from "../content/parse-object.ts";
import { type ProbeOptions, type ProbeResult, withProbe } from "./probe.ts";
import { NO_EVIDENCE, type ProviderRow, readToken, toProviderFailure } from "./provider-failure.ts";
import { readRetryAt } from "../transport/read-retry-after.ts";
import { FAILED, NOT_THE_API, rowOfUnlockerStatus, WRONG_KEY } from "./unlocker-codes.ts";

/** The Unlocker's API as it is configured. */
export type UnlockerApi = { readonly url: string; readonly apiKey: string; readonly zone: string };

/**
 * Whether the Unlocker would serve us: the account may make requests, and our zone is among the active ones. Both questions
 * are free. Only `can_make_requests: true` counts as evidence; its `false` was seen on accounts that were served, so it is
 * a failure that quarantines nothing. A key that may not list zones is judged by the account alone.
 */
export function probeUnlocker(api: UnlockerApi, options: ProbeOptions): Promise<ProbeResult> {
  return withProbe({ url: api.url, token: api.apiKey }, "UNLOCKER", "PAID_EGRESS", options, async (ask) => {
    const status = await ask("GET", "/status", null);
    if (!status.ok) return status;
    const { head } = status;
    if (head.httpStatus !== 200) {
      // Here a 403 is a key without the right to ask.
      const row = head.httpStatus === 403 ? WRONG_KEY : rowOfUnlockerStatus(head.httpStatus);
      return failed(row, { httpStatus: head.httpStatus, retryAt: readRetryAt(head, Date.now()) });
    }
    const account = parseObject(status.text);
    if (account === null) return failed(NOT_THE_API, { nativeCode: "NOT_JSON", httpStatus: 200 });
    if (account["can_make_requests"] !== true) return refusedAccount(account);
    const zones = await ask("GET", "/zone/get_active_zones", null);
    if (!zones.ok) return zones;
    const names = zones.head.httpStatus === 200 ? readZoneNames(zones.text) : null;
    return names === null || names.includes(api.zone)
      ? { ok: true }
      : failed(WRONG_KEY, { nativeCode: "zone_not_active" });
  });
}

function failed(row: ProviderRow, evidence: Partial<typeof NO_EVIDENCE>): { ok: false; failure: UpstreamFailure } {
  return { ok: false, failure: toProviderFailure(row, { ...NO_EVIDENCE, ...evidence }) };
}

function refusedAccount(account: Readonly<Record<string, unknown>>): ProbeResult {
  const { status, auth_fail_reason: reason } = account;
  if (typeof status === "string" && /^suspended$/iu.test(status)) {
    return failed({ ...WRONG_KEY, code: "PROVIDER_PAYMENT", action: "PAY_SUPPLIER" }, { nativeCode: "suspended" });
  }
  const nativeCode = typeof reason === "string" ? readToken(reason, 60) : null;
  return failed(FAILED, { nativeCode: nativeCode ?? "can_make_requests_false", httpStatus: 200 });
}

function readZoneNames(text: string): readonly string[] | null {
  const value = parseObject(`{"zones":${text}}`)?.["zones"];
  if (!Array.isArray(value)) return null;
  return value.flatMap((zone: unknown) => (isObject(zone) && typeof zone["name"] === "string" ? [zone["name"]] : []));
}
