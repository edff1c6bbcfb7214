import type { CDPSession } from "playwright-core";
import type { VettedUrl } from "../policy/vet-url.ts";
import { readResponseHead, type ResponseHead } from "../transport/response-head.ts";
import { readNetError } from "./classify-net-error.ts";
import { readRefusedBody } from "./read-refused-body.ts";

/** What to do with the response to a navigation. KEEP: read the start of its body, and do not show it. SKIP: neither. */
export type HeadDecision = "RENDER" | "KEEP" | "SKIP";

/** How a navigation ended. COMMITTED: its document is in the page. EMPTY: an error status without a body has no document. */
export type NavigationEnd =
  | { readonly kind: "COMMITTED"; readonly loaderId: string; readonly requestId: string }
  | { readonly kind: "EMPTY" }
  | { readonly kind: "NOT_SHOWN"; readonly body: Buffer | null }
  | { readonly kind: "DOWNLOAD" }
  | { readonly kind: "FAILED"; readonly netError: string };

/** Where a page's own script, form or meta element wanted to go. Only what is read with GET can be asked for again. */
export type Departure = { readonly url: string; readonly isGet: boolean };

/**
 * Lets exactly those documents into a page's main frame that it is told to, one request at a time: no redirect is followed
 * by the browser, and nothing that the page does leads its main frame elsewhere.
 */
export type NavigationGate = {
  /** Resolves with the first departure that was refused since the last `navigate`. */
  departed(): Promise<Departure>;
  /** Takes the document out of the page, so that nothing of it runs any more. */
  clear(): Promise<void>;
  /**
   * Requests one vetted URL, with `headers` in place of the browser's own of those names. `decide` is called once, with the
   * response's head, unless the navigation fails before.
   */
  navigate(
    url: VettedUrl,
    headers: ReadonlyMap<string, string>,
    decide: (head: ResponseHead) => HeadDecision,
  ): Promise<NavigationEnd>;
};

type Expected = {
  readonly url: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly decide: (head: ResponseHead) => HeadDecision;
  isRequested: boolean;
  requestId: string;
  /** Set when the response is not shown: its body, once it was read. */
  notShown: Promise<Buffer | null> | null;
};

/** Puts a gate before a page that has loaded nothing yet. The credentials are given to our own proxy and to nobody else. */
export async function createNavigationGate(
  session: CDPSession,
  frameId: string,
  credentials: { readonly username: string; readonly password: string },
): Promise<NavigationGate> {
  let expected: Expected | null = null;
  let departing = createDeparting();
  const asked = new Set<string>();

  // A command fails here when the page is gone; whoever waits for it hears that from the page.
  const orGone = (sent: Promise<unknown>): void => {
    sent.catch(() => {});
  };

  session.on("Fetch.authRequired", ({ requestId, authChallenge }) => {
    const isOurs = authChallenge.source === "Proxy" && !asked.has(requestId);
    asked.add(requestId);
    const answer = isOurs
      ? { response: "ProvideCredentials" as const, ...credentials }
      : { response: "CancelAuth" as const };
    orGone(session.send("Fetch.continueWithAuth", { requestId, authChallengeResponse: answer }));
  });

  session.on("Fetch.requestPaused", (paused) => {
    const { requestId } = paused;
    if (paused.frameId !== frameId || paused.resourceType !== "Document") {
      orGone(session.send("Fetch.continueRequest", { requestId }));
      return;
    }
    const isRequest = paused.responseStatusCode === undefined && paused.responseErrorReason === undefined;
    if (isRequest) {
      if (expected === null || expected.isRequested || !isSameUrl(paused.request.url, expected.url)) {
        // An answer without content leaves the document as it is; an error would stop it where it is.
        orGone(session.send("Fetch.fulfillRequest", { requestId, responseCode: 204 }));
        departing.note({ url: paused.request.url, isGet: paused.request.method === "GET" });
        return;
      }
      expected.isRequested = true;
      expected.requestId = paused.networkId ?? "";
      const headers = withHeaders(paused.request.headers, expected.headers);
      orGone(session.send("Fetch.continueRequest", { requestId, headers }));
      return;
    }
    if (paused.responseStatusCode === undefined || expected === null) {
      orGone(session.send("Fetch.continueRequest", { requestId }));
      return;
    }
    const raw = (paused.responseHeaders ?? []).flatMap(({ name, value }) => [name, toLatin1(value)]);
    const decision = expected.decide(readResponseHead(paused.responseStatusCode, raw, paused.request.method));
    if (decision === "RENDER") {
      orGone(session.send("Fetch.continueRequest", { requestId }));
      return;
    }
    expected.notShown = (decision === "KEEP" ? readRefusedBody(session, requestId) : Promise.resolve(null)).finally(
      () => {
        orGone(session.send("Fetch.failRequest", { requestId, errorReason: "Aborted" }));
      },
    );
  });

  await session.send("Fetch.enable", {
    handleAuthRequests: true,
    patterns: [
      // All of them: one that asked for a login and got no answer would never end.
      { urlPattern: "*", requestStage: "Request" },
      { urlPattern: "*", resourceType: "Document", requestStage: "Response" },
    ],
  });

  return {
    departed: () => departing.first,
    async clear() {
      await session.send("Page.navigate", { url: "about:blank" });
    },
    async navigate(url, headers, decide) {
      const current: Expected = { url: url.href, headers, decide, isRequested: false, requestId: "", notShown: null };
      expected = current;
      departing = createDeparting();
      try {
        const made = await session.send("Page.navigate", { url: url.href });
        if (current.notShown !== null) return { kind: "NOT_SHOWN", body: await current.notShown };
        if (made.isDownload === true) return { kind: "DOWNLOAD" };
        if (made.errorText === undefined && made.loaderId !== undefined) {
          return { kind: "COMMITTED", loaderId: made.loaderId, requestId: current.requestId };
        }
        const netError = readNetError(made.errorText ?? "");
        return netError === EMPTY_ERROR_PAGE ? { kind: "EMPTY" } : { kind: "FAILED", netError };
      } finally {
        expected = null;
      }
    },
  };
}

/** The same but for what is percent-encoded: there Chromium and we are not of one mind about every character. */
function isSameUrl(one: string, other: string): boolean {
  const [a, b] = [one, other].map((url) =>
    url
      .replace(/#.*$/s, "")
      .replace(/%([0-9a-f]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
  );
  return a === b;
}

function createDeparting() {
  let note: (departure: Departure) => void = () => {};
  const first = new Promise<Departure>((resolve) => {
    note = resolve;
  });
  return { first, note };
}

/** What Chromium says when an error status came without a body. */
const EMPTY_ERROR_PAGE = "ERR_HTTP_RESPONSE_CODE_FAILURE";

function withHeaders(
  own: Readonly<Record<string, string>>,
  ours: ReadonlyMap<string, string>,
): { readonly name: string; readonly value: string }[] {
  const kept = Object.entries(own).filter(([name]) => !ours.has(name.toLowerCase()));
  return [...kept, ...ours].map(([name, value]) => ({ name, value }));
}

/** The protocol shows a header's bytes as the text that they are in UTF-8; we read heads as bytes. */
function toLatin1(value: string): string {
  return Buffer.from(value, "utf8").toString("latin1");
}
