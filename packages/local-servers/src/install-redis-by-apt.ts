import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { promisify } from "node:util";
import { LocalServerError } from "./local-server-error.ts";
import { SERVER_ENVIRONMENT } from "./server-environment.ts";

/** INSTALLED: the package is there now. NOT_APPLICABLE: not root, or no apt on this machine; nothing was tried. */
export type RedisInstallation = "INSTALLED" | "NOT_APPLICABLE";

const APT = "/usr/bin/apt-get";
const TIMEOUT_MS = 180_000;
/** Another apt or dpkg may be at work: it is waited for, up to a minute. */
const WAIT_FOR_OTHERS = ["-o", "DPkg::Lock::Timeout=60"];
const run = promisify(execFile);

/**
 * Installs Debian's or Ubuntu's `redis-server` package when this process is root there. The package may start a server of
 * its own on 6379; we never use that one. `onMessage` gets one line for each step. Fails with REDIS_INSTALL_FAILED.
 */
export async function installRedisByApt(options: {
  readonly onMessage: (message: string) => void;
  /** More environment for apt-get, such as a proxy; absent: none. */
  readonly env?: Readonly<Record<string, string>>;
}): Promise<RedisInstallation> {
  if (process.getuid?.() !== 0 || !hasApt()) return "NOT_APPLICABLE";
  const env = { ...options.env, ...SERVER_ENVIRONMENT, DEBIAN_FRONTEND: "noninteractive" };
  try {
    options.onMessage("No Redis on the PATH: installing the package redis-server with apt-get");
    await run(APT, ["update", "-qq"], { env, timeout: TIMEOUT_MS });
    await run(APT, [...WAIT_FOR_OTHERS, "install", "-y", "-qq", "--no-install-recommends", "redis-server"], {
      env,
      timeout: TIMEOUT_MS,
    });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split("\n").slice(0, 3).join(" ") : "unknown";
    throw new LocalServerError("REDIS_INSTALL_FAILED", `apt-get could not install redis-server: ${reason}`, { cause });
  }
  return "INSTALLED";
}

function hasApt(): boolean {
  try {
    accessSync(APT, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
