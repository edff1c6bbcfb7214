import type { Capture } from "@keble-scraper/contract";
import type { ProviderAsk } from "./provider-transport.ts";

/** When a page counts as loaded. */
export type WaitUntil = "load" | "domcontentloaded" | "networkidle0" | "networkidle2";

/** The media type of what each capture yields. */
export const CAPTURE_TYPES = {
  DOM: "text/html; charset=utf-8",
  SCREENSHOT: "image/png",
  PDF: "application/pdf",
  MHTML: "multipart/related",
} as const satisfies Record<Capture, string>;

/** MHTML is offered by none of them and refused before. */
const ENDPOINTS = { DOM: "content", SCREENSHOT: "screenshot", PDF: "pdf", MHTML: "content" } as const;

/** The provider's own bound of a navigation. */
const NAVIGATION_MS_MAX = 60_000;
/** What the rest of a call (a browser's start, the capture, the way back) may take of an attempt's limit. */
const AROUND_NAVIGATION_MS = 5_000;

/** Path and query of the call that yields a capture. A cached page would be that of a moment ago: none is wanted. */
export function toCallPath(accountId: string, capture: Capture): string {
  return `/accounts/${accountId}/browser-rendering/${ENDPOINTS[capture]}?cacheTTL=0`;
}

/**
 * The body of a call: the vetted URL, how long the navigation may take within what is left of the attempt, and those of the
 * caller's headers that the provider has a place for. Headers about one resource (accept, conditions) would go out with
 * every picture and script of the page, so they are left out.
 */
export function toRequestBody(
  ask: ProviderAsk,
  options: { readonly userAgent: string; readonly waitUntil: WaitUntil; readonly leftMs: number },
): string {
  const own = new Map(Object.entries(ask.headers).map(([name, value]) => [name.toLowerCase(), value]));
  const referer = own.get("referer");
  const language = own.get("accept-language");
  const leftMs = Math.floor(Math.max(options.leftMs - AROUND_NAVIGATION_MS, options.leftMs / 2));
  return JSON.stringify({
    url: ask.url.href,
    userAgent: own.get("user-agent") ?? options.userAgent,
    gotoOptions: {
      waitUntil: options.waitUntil,
      timeout: Math.min(Math.max(1, leftMs), NAVIGATION_MS_MAX),
      ...(referer === undefined ? {} : { referer }),
    },
    ...(language === undefined ? {} : { setExtraHTTPHeaders: { "accept-language": language } }),
    ...(ask.capture === "SCREENSHOT" ? { screenshotOptions: { type: "png", fullPage: true } } : {}),
  });
}
