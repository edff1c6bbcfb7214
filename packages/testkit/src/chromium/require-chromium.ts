import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

const APT = "/usr/bin/apt-get";
/** Some 110 MB are fetched and 400 MB written. */
const INSTALL_MS_MAX = 240_000;
const AGAIN_AFTER_MS = 2_000;
const run = promisify(execFile);

/**
 * The browser that `find` finds. Where it throws, Debian's `chromium` package is installed when this process is root there
 * (Ubuntu's is only a pointer to a snap), and what `find` then says is the answer. Test files that need it at the same
 * time wait for the first one's install. Give the hook that calls it five minutes.
 */
export async function requireChromium(find: () => string): Promise<string> {
  const deadline = performance.now() + INSTALL_MS_MAX;
  for (;;) {
    try {
      return find();
    } catch (missing) {
      if (process.getuid?.() !== 0 || !existsSync(APT) || performance.now() > deadline) throw missing;
    }
    // Only one apt runs at a time: whoever finds it taken looks again.
    if (!(await tryInstall())) await delay(AGAIN_AFTER_MS);
  }
}

async function tryInstall(): Promise<boolean> {
  const options = { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }, timeout: INSTALL_MS_MAX };
  try {
    process.stdout.write("No Chromium in the usual places: installing the package chromium with apt-get\n");
    await run(APT, ["update", "-qq"], options);
    const install = ["-o", "DPkg::Lock::Timeout=60", "install", "-y", "-qq", "--no-install-recommends", "chromium"];
    await run(APT, install, options);
    return true;
  } catch {
    return false;
  }
}
