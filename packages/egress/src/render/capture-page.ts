import type { Capture } from "@keble-scraper/contract";
import type { CDPSession } from "playwright-core";

/**
 * What a page became. TOO_LARGE: more than it may; nothing of it is kept. ELSEWHERE: the page is not at its own origin any more.
 * NOT_CAPTURED: the browser lives and says that it cannot: a page can ask for paper of no size that there is.
 */
export type Captured =
  | { readonly kind: "ARTIFACT"; readonly bytes: Buffer; readonly contentType: string; readonly essence: string }
  | { readonly kind: "TOO_LARGE" }
  | { readonly kind: "ELSEWHERE" }
  | { readonly kind: "NOT_CAPTURED" };

/** A loaded page, and where its script and style cannot reach. */
export type CaptureSource = { readonly session: CDPSession; readonly frameId: string; readonly origin: string };

/** CSS pixels. Chromium draws no texture that is larger. */
const SCREENSHOT_HEIGHT_MAX = 16_384;
const SCREENSHOT_WIDTH_MAX = 4_096;

/** The usual width at the greatest height, 60 MiB of noise: a picture comes in one piece, in base64, and is held as such. */
const SCREENSHOT_PIXELS_MAX = 1_280 * SCREENSHOT_HEIGHT_MAX;

/** Pages of a PDF; what follows is left out. */
const PDF_PAGES_MAX = 500;

const READ_BYTES = 256 * 1024;

/** Captures a page in one of the ways there are. The artifact has at most `bytesMax` bytes. */
export async function capturePage(capture: Capture, source: CaptureSource, bytesMax: number): Promise<Captured> {
  const dom = await captureDom(source, capture === "DOM" ? bytesMax : 0);
  if (capture === "DOM" || dom.kind === "ELSEWHERE") return dom;
  try {
    return await take(capture, source.session, bytesMax);
  } catch (error) {
    if (isRefusal(error)) return { kind: "NOT_CAPTURED" };
    throw error;
  }
}

async function take(capture: Exclude<Capture, "DOM">, session: CDPSession, bytesMax: number): Promise<Captured> {
  switch (capture) {
    case "SCREENSHOT":
      return within(bytesMax, await drawPage(session), "image/png");
    case "PDF":
      return printPage(session, bytesMax);
    case "MHTML":
      return within(bytesMax, await snapshotPage(session), "multipart/related");
  }
}

/** An answer of the browser's to a command; what is gone gives none. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof Error && /Protocol error \(\w+\.\w+\): (?!.*(?:crashed|closed|detached))/is.test(error.message)
  );
}

/** The document as it is now, serialised with its doctype, as UTF-8. Read from a world of our own, where no script of the page's has been. */
export async function captureDom({ session, frameId, origin }: CaptureSource, bytesMax: number): Promise<Captured> {
  const { executionContextId: contextId } = await session.send("Page.createIsolatedWorld", { frameId });
  const expression = `(${SERIALISE})(${JSON.stringify(origin)}, ${bytesMax})`;
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    contextId,
    expression,
    returnByValue: true,
  });
  // A document may be longer than any text.
  if (exceptionDetails !== undefined) return { kind: "NOT_CAPTURED" };
  const made = result.value as SerialisedDocument;
  if (made.kind !== "HTML") return { kind: made.kind };
  const bytes = Buffer.from(made.text, "utf8");
  if (bytes.length > bytesMax) return { kind: "TOO_LARGE" };
  return { kind: "ARTIFACT", bytes, contentType: `${made.type}; charset=utf-8`, essence: made.type };
}

type SerialisedDocument =
  | { readonly kind: "HTML"; readonly text: string; readonly type: string }
  | { readonly kind: "TOO_LARGE" }
  | { readonly kind: "ELSEWHERE" };

/** Runs in the browser. A text is never shorter in UTF-8, so that one that is too long is not even handed over. */
const SERIALISE = `(origin, charsMax) => {
  if (location.origin !== origin || location.protocol === "blob:") return { kind: "ELSEWHERE" };
  const isXml = document.contentType.endsWith("xml");
  const root = document.documentElement;
  const writer = new XMLSerializer();
  const doctype = document.doctype === null || isXml ? "" : writer.serializeToString(document.doctype) + "\\n";
  const text = root === null ? "" : isXml ? writer.serializeToString(document) : doctype + root.outerHTML;
  if (text.length > charsMax) return { kind: "TOO_LARGE" };
  return { kind: "HTML", text, type: isXml ? document.contentType : "text/html" };
}`;

async function drawPage(session: CDPSession): Promise<Buffer> {
  const { cssContentSize, cssLayoutViewport } = await session.send("Page.getLayoutMetrics");
  const width = Math.min(SCREENSHOT_WIDTH_MAX, Math.max(1, cssLayoutViewport.clientWidth, cssContentSize.width));
  const heightMax = Math.min(SCREENSHOT_HEIGHT_MAX, Math.floor(SCREENSHOT_PIXELS_MAX / width));
  const height = Math.min(heightMax, Math.max(1, cssLayoutViewport.clientHeight, cssContentSize.height));
  const { data } = await session.send("Page.captureScreenshot", {
    format: "png",
    captureBeyondViewport: true,
    clip: { x: 0, y: 0, width, height, scale: 1 },
  });
  return Buffer.from(data, "base64");
}

async function printPage(session: CDPSession, bytesMax: number): Promise<Captured> {
  const { stream } = await session.send("Page.printToPDF", {
    printBackground: true,
    preferCSSPageSize: true,
    pageRanges: `1-${PDF_PAGES_MAX}`,
    transferMode: "ReturnAsStream",
  });
  if (stream === undefined) throw new Error("a PDF came without a stream");
  const parts: Buffer[] = [];
  let total = 0;
  for (;;) {
    const { data, eof, base64Encoded } = await session.send("IO.read", { handle: stream, size: READ_BYTES });
    const part = Buffer.from(data, base64Encoded === true ? "base64" : "latin1");
    total += part.length;
    if (total > bytesMax) break;
    parts.push(part);
    if (eof) break;
  }
  await session.send("IO.close", { handle: stream });
  return total > bytesMax ? { kind: "TOO_LARGE" } : within(bytesMax, Buffer.concat(parts), "application/pdf");
}

async function snapshotPage(session: CDPSession): Promise<Buffer> {
  const { data } = await session.send("Page.captureSnapshot", { format: "mhtml" });
  return Buffer.from(data, "utf8");
}

function within(bytesMax: number, bytes: Buffer, contentType: string): Captured {
  return bytes.length > bytesMax
    ? { kind: "TOO_LARGE" }
    : { kind: "ARTIFACT", bytes, contentType, essence: contentType };
}
