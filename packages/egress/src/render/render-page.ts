import type { BrowserContext, CDPSession, Page } from "playwright-core";
import type { LaunchedBrowser } from "./launch-browser.ts";
import { createNavigationGate, type NavigationGate } from "./navigation-gate.ts";
import { createPageWatch, type PageWatch } from "./page-watch.ts";
import { LATE, within } from "./within.ts";

/** What became of a page that nobody ended: the attempt is lost, the next one gets a browser that works. */
export class BrowserCrashed extends Error {
  override name = "BrowserCrashed";
}

/** A page of its own context: no cookies, cache, storage or credentials but its own. */
export type RenderPage = {
  readonly session: CDPSession;
  readonly frameId: string;
  readonly gate: NavigationGate;
  readonly watch: PageWatch;
  /** Rejects when the page or its browser crashes; never resolves. */
  readonly crashed: Promise<never>;
  /** Closes the context and all that it holds; false when that took longer than `withinMs`. Idempotent. */
  close(withinMs: number): Promise<boolean>;
};

/** A page's outside: what scripts see of the machine. */
const VIEWPORT = { width: 1_280, height: 800 } as const;

/**
 * Opens a page in a fresh context: no downloads, no permissions, no service workers, certificates verified. Dialogs are
 * dismissed and popups closed as they come.
 */
export async function openRenderPage(
  { browser, gone }: LaunchedBrowser,
  options: {
    readonly userAgent: string;
    readonly credentials: { readonly username: string; readonly password: string };
    readonly decodedBytesMax: number;
  },
): Promise<RenderPage> {
  const context = await browser.newContext({
    acceptDownloads: false,
    permissions: [],
    serviceWorkers: "block",
    ignoreHTTPSErrors: false,
    javaScriptEnabled: true,
    userAgent: options.userAgent,
    viewport: VIEWPORT,
  });
  try {
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    const crashed = watchForCrash(page, gone);
    keepAlone(context, page);
    const { frameTree } = await session.send("Page.getFrameTree");
    const frameId = frameTree.frame.id;
    const watch = await createPageWatch(session, frameId, options.decodedBytesMax);
    const gate = await createNavigationGate(session, frameId, options.credentials);
    let closing: Promise<void> | undefined;
    return {
      session,
      frameId,
      gate,
      watch,
      crashed,
      async close(withinMs) {
        watch.end();
        // A context of a browser that is gone has nothing left to close.
        closing ??= context.close().catch(() => {});
        return (await within(withinMs, closing)) !== LATE;
      },
    };
  } catch (error) {
    await context.close().catch(() => {});
    throw error;
  }
}

function watchForCrash(page: Page, gone: Promise<void>): Promise<never> {
  const crashed = new Promise<never>((_resolve, reject) => {
    page.once("crash", () => {
      reject(new BrowserCrashed("a page crashed"));
    });
    void gone.then(() => {
      reject(new BrowserCrashed("a browser crashed"));
    });
  });
  // Whoever waits for the page hears of it; after that nobody does.
  crashed.catch(() => {});
  return crashed;
}

function keepAlone(context: BrowserContext, page: Page): void {
  page.on("dialog", (dialog) => {
    void dialog.dismiss().catch(() => {});
  });
  context.on("page", (other) => {
    void other.close().catch(() => {});
  });
}
