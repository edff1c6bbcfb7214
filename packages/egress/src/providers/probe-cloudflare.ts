import { isObject, parseObject } from "../content/parse-object.ts";
import { readEnvelope, toCloudflareFailure } from "./cloudflare-failure.ts";
import { CLOUDFLARE_AUTH, NOT_CLOUDFLARE } from "./cloudflare-codes.ts";
import { type Ask, type ProbeAnswer, type ProbeOptions, type ProbeResult, withProbe } from "./probe.ts";
import { NO_EVIDENCE, toProviderFailure } from "./provider-failure.ts";

/** Cloudflare's API as it is configured. */
export type CloudflareApi = { readonly url: string; readonly accountId: string; readonly apiToken: string };

/** A page that costs next to no browser time. */
const SMALLEST_PAGE = JSON.stringify({ html: "<p>ok</p>", gotoOptions: { timeout: 10_000, waitUntil: "load" } });

/**
 * Whether Browser Rendering would serve us. A route in service is asked for its token only, which is free: a token of a
 * user, else of the account. A quarantined one must also render the smallest page there is, for about half a second of
 * browser time: nothing else tells whether the permission is there and the day's time is not spent.
 */
export function probeCloudflare(api: CloudflareApi, options: ProbeOptions): Promise<ProbeResult> {
  const { url, accountId, apiToken } = api;
  return withProbe({ url, token: apiToken }, "CLOUDFLARE_RENDER", "BROWSER_PROVIDER", options, async (ask) => {
    const token = await verifyToken(ask, accountId);
    if (!token.ok || (options.quarantinedFor ?? null) === null) return token;
    const path = `/accounts/${accountId}/browser-rendering/content?cacheTTL=0`;
    return judge(await ask("POST", path, SMALLEST_PAGE));
  });
}

async function verifyToken(ask: Ask, accountId: string): Promise<ProbeResult> {
  const asUser = await ask("GET", "/user/tokens/verify", null);
  if (!asUser.ok || isActive(asUser)) return judge(asUser);
  // Anything but a refusal of the token would meet the account's question, too.
  const mayBeAccounts = asUser.head.httpStatus >= 400 && asUser.head.httpStatus <= 404;
  return mayBeAccounts ? judge(await ask("GET", `/accounts/${accountId}/tokens/verify`, null)) : judge(asUser);
}

function judge(answer: ProbeAnswer): ProbeResult {
  if (!answer.ok) return answer;
  const { head, text } = answer;
  const envelope = readEnvelope(text);
  if (head.httpStatus === 200 && envelope?.isSuccess === true) {
    if (!isDisabled(text)) return { ok: true };
    return {
      ok: false,
      failure: toProviderFailure(CLOUDFLARE_AUTH, { ...NO_EVIDENCE, nativeCode: "token_not_active" }),
    };
  }
  if (head.httpStatus === 200 && envelope === null) {
    return { ok: false, failure: toProviderFailure(NOT_CLOUDFLARE, { ...NO_EVIDENCE, nativeCode: "NOT_JSON" }) };
  }
  // The verify calls answer a bad token with 400 and codes of their own.
  const refusal = head.httpStatus === 400 ? envelope?.errors.find(({ code }) => code < 2_000) : undefined;
  if (refusal === undefined) return { ok: false, failure: toCloudflareFailure(head, envelope, Date.now()) };
  const nativeCode = String(refusal.code);
  return { ok: false, failure: toProviderFailure(CLOUDFLARE_AUTH, { ...NO_EVIDENCE, nativeCode, httpStatus: 400 }) };
}

function isActive(answer: ProbeAnswer): boolean {
  return answer.ok && answer.head.httpStatus === 200 && !isDisabled(answer.text) && readEnvelope(answer.text) !== null;
}

/** A token's status is `active`, `disabled` or `expired`; other results have none. */
function isDisabled(text: string): boolean {
  const result = parseObject(text)?.["result"];
  return isObject(result) && "status" in result && result["status"] !== "active";
}
