import { accessSync, constants } from "node:fs";

/** Why no browser can be run. `message` is fit for a terminal: it says how to get one. */
export class ChromiumMissing extends Error {
  override name = "ChromiumMissing";
}

/**
 * Where Debian, Ubuntu, Google's packages, snap and macOS put it. Debian's program itself comes before its wrapper script,
 * which adds flags of the machine's own.
 */
export const CHROMIUM_PLACES: readonly string[] = [
  "/usr/lib/chromium/chromium",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/opt/google/chrome/chrome",
  "/usr/bin/google-chrome-stable",
  "/usr/bin/google-chrome",
  "/snap/bin/chromium",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/**
 * The browser to run: the configured one, which then has to be there, else the first of the usual places. Throws
 * `ChromiumMissing`.
 */
export function findChromium(
  executablePath: string | null,
  isExecutable: (file: string) => boolean = canBeRun,
): string {
  if (executablePath !== null) {
    if (isExecutable(executablePath)) return executablePath;
    throw new ChromiumMissing(`SCRAPER_CHROMIUM_PATH names ${executablePath}, which is no program that can be run.`);
  }
  const found = CHROMIUM_PLACES.find(isExecutable);
  if (found !== undefined) return found;
  throw new ChromiumMissing(
    "LOCAL_RENDER needs Chromium, and none is in the usual places. Three ways to get one: install your system's package " +
      "(Debian: apt-get install chromium), install Google Chrome, or have one elsewhere and name it in SCRAPER_CHROMIUM_PATH.",
  );
}

function canBeRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
