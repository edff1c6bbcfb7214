import type { LaunchedBrowser } from "./launch-browser.ts";
import { LATE, within } from "./within.ts";

/** A browser for one job. */
export type BrowserLease = {
  readonly launched: LaunchedBrowser;
  /** The job has ended. A browser that did what it may, or grew too large, is closed with its last job. Idempotent. */
  release(): Promise<void>;
  /** Gives the browser no further job: something in it does not obey any more. */
  retire(): void;
};

/** One browser at a time for new jobs, started when the first job needs it. */
export type BrowserPool = {
  /** A browser that is up. Rejects with the launch's own error. */
  acquire(): Promise<BrowserLease>;
  /** Browsers that run or start. */
  browsers(): number;
  /** Closes every browser, whatever still runs in it. Idempotent. */
  close(): Promise<void>;
};

/** `jobsMax`: jobs that one browser serves. `memoryBytesMax`: of all its processes; checked as each job ends. */
export type BrowserPoolOptions = {
  readonly jobsMax: number;
  readonly memoryBytesMax: number;
  readonly launch: () => Promise<LaunchedBrowser>;
};

type Host = {
  readonly launched: Promise<LaunchedBrowser>;
  started: number;
  running: number;
  isRetired: boolean;
  closing: Promise<void> | undefined;
};

/** A pool without a browser. */
export function createBrowserPool({ jobsMax, memoryBytesMax, launch }: BrowserPoolOptions): BrowserPool {
  const hosts = new Set<Host>();
  let current: Host | null = null;
  let closing: Promise<void> | undefined;

  const closeHost = (host: Host): Promise<void> => {
    host.isRetired = true;
    host.closing ??= host.launched
      .then((launched) => launched.close())
      .catch(() => {})
      .finally(() => hosts.delete(host));
    return host.closing;
  };
  const retire = (host: Host): void => {
    host.isRetired = true;
    if (current === host) current = null;
    if (host.running === 0) void closeHost(host);
  };
  const start = (): Host => {
    const host: Host = { launched: launch(), started: 0, running: 0, isRetired: false, closing: undefined };
    hosts.add(host);
    host.launched.then(
      ({ gone }) => {
        void gone.then(() => {
          retire(host);
        });
      },
      () => {
        retire(host);
      },
    );
    return host;
  };
  const retireIfLarge = async (host: Host, launched: LaunchedBrowser): Promise<void> => {
    // A browser that dies while it is asked is nobody's to use again anyway; one that does not answer is not well.
    const bytes = await within(ANSWER_MS_MAX, launched.memoryBytes()).catch(() => null);
    if (bytes === LATE || (bytes !== null && bytes > memoryBytesMax)) retire(host);
  };
  const take = (): Host => {
    current ??= start();
    const host = current;
    host.started += 1;
    host.running += 1;
    // This is its last one: whoever comes next finds no current browser and starts another.
    if (host.started >= jobsMax) retire(host);
    return host;
  };
  const giveBack = (host: Host): void => {
    host.running -= 1;
    if (host.isRetired && host.running === 0) void closeHost(host);
  };

  return {
    async acquire() {
      if (closing !== undefined) throw new Error("the browsers are closed");
      const host = take();
      let launched: LaunchedBrowser;
      try {
        launched = await host.launched;
      } catch (error) {
        giveBack(host);
        throw error;
      }
      let released: Promise<void> | undefined;
      const release = async (): Promise<void> => {
        if (!host.isRetired) await retireIfLarge(host, launched);
        giveBack(host);
      };
      return {
        launched,
        release() {
          released ??= release();
          return released;
        },
        retire() {
          retire(host);
        },
      };
    },
    browsers: () => hosts.size,
    close() {
      closing ??= Promise.all([...hosts].map(closeHost)).then(() => {});
      return closing;
    },
  };
}

/** How long a browser may take to say how large it is. */
const ANSWER_MS_MAX = 2_000;
