import { type Browser, type CDPSession, chromium } from "playwright-core";
import { sumResidentBytes } from "./process-memory.ts";
import { LATE, within } from "./within.ts";

/** A running browser and how it is looked into and ended. */
export type LaunchedBrowser = {
  readonly browser: Browser;
  /** Resolves when it has ended, however it did. */
  readonly gone: Promise<void>;
  /** Of its whole process tree as far as the kernel tells; null where it does not (no /proc). */
  memoryBytes(): Promise<number | null>;
  /** Closes it, and kills it when it does not close by itself. Idempotent. */
  close(): Promise<void>;
};

/** For tests, which have certificates of their own: SHA-256 of public keys, in base64, whose certificates are not judged. */
export type LaunchOverrides = { readonly trustedKeys?: readonly string[] };

const LAUNCH_TIMEOUT_MS = 30_000;
const CLOSE_TIMEOUT_MS = 3_000;

/**
 * Starts a browser that reaches nothing but the forward proxy on `proxyPort`. It is driven over a pipe that it was born
 * with: when this process dies, the pipe ends and the browser with it.
 */
export async function launchBrowser(options: {
  readonly executablePath: string;
  readonly proxyPort: number;
  readonly overrides?: LaunchOverrides | undefined;
}): Promise<LaunchedBrowser> {
  const { executablePath, proxyPort, overrides = {} } = options;
  const browser = await chromium.launch({
    executablePath,
    headless: true,
    // Chromium's own sandbox does not work for root; whoever runs a worker as root has none.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [...browserFlags(proxyPort), ...trustFlags(overrides.trustedKeys ?? [])],
    // Popups stay blocked: a page has no user whose click would open one.
    ignoreDefaultArgs: ["--disable-popup-blocking"],
    timeout: LAUNCH_TIMEOUT_MS,
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  const { session, pid } = await lookInto(browser);
  const gone = new Promise<void>((resolve) => {
    browser.once("disconnected", () => {
      resolve();
    });
    if (!browser.isConnected()) resolve();
  });
  let closing: Promise<void> | undefined;
  return {
    browser,
    gone,
    async memoryBytes() {
      if (!browser.isConnected()) return null;
      return sumResidentBytes((await readPids(session)).map(({ id }) => id));
    },
    close() {
      closing ??= closeOrKill(browser, pid, gone);
      return closing;
    },
  };
}

/**
 * The figures behind each flag were measured on Chromium 156. `--disable-features` must not be among them: it would replace
 * the list that the driver passes, and with it more of the browser's own calls come back.
 */
function browserFlags(proxyPort: number): string[] {
  return [
    `--proxy-server=http://127.0.0.1:${proxyPort}`,
    // Without it loopback addresses bypass a proxy.
    "--proxy-bypass-list=<-loopback>",
    // A second wall: nothing but the proxy's own address is ever resolved.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    // Without it WebRTC sends STUN and mDNS by UDP past the proxy; the `force-` spelling does nothing any more.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
  ];
}

function trustFlags(keys: readonly string[]): string[] {
  return keys.length === 0 ? [] : [`--ignore-certificate-errors-spki-list=${keys.join(",")}`];
}

/** A session about the browser as a whole, and the number of its own process. */
async function lookInto(browser: Browser): Promise<{ readonly session: CDPSession; readonly pid: number | null }> {
  try {
    const session = await browser.newBrowserCDPSession();
    return { session, pid: (await readPids(session)).find(({ type }) => type === "browser")?.id ?? null };
  } catch (error) {
    await browser.close();
    throw error;
  }
}

type ProcessInfo = { readonly type: string; readonly id: number };

async function readPids(session: CDPSession): Promise<readonly ProcessInfo[]> {
  return (await session.send("SystemInfo.getProcessInfo")).processInfo;
}

async function closeOrKill(browser: Browser, pid: number | null, gone: Promise<void>): Promise<void> {
  if (!browser.isConnected()) return;
  const closed = await within(
    CLOSE_TIMEOUT_MS,
    browser.close().catch(() => {}),
  );
  if (closed === LATE && pid !== null) {
    kill(pid);
    await gone;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone, which is what was wanted.
  }
}
