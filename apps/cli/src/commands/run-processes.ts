import { type Container, SERVICE_NAMES, type ServiceName, type Settings } from "@keble-scraper/service";
import { checkSettingFiles } from "../check-setting-files.ts";
import type { CliContext } from "../cli-context.ts";
import { CliError } from "../cli-error.ts";
import { type ProcessKind, PROCESSES } from "../process-table.ts";
import { readSettings } from "../read-settings.ts";
import { toStoreError } from "../to-store-error.ts";
import { untilAborted } from "../until-aborted.ts";

/**
 * Runs process kinds in this process until it is told to end, then drains them. They start in the order given; the
 * gateway stops first, the others after it, at the same time. A kind that can't start stops those that did and fails.
 */
export async function runProcesses(context: CliContext, kinds: readonly ProcessKind[]): Promise<void> {
  const given = readSettings(context);
  const settings = kinds.length > 1 ? withPortsOfUrls(given) : given;
  if (kinds.includes("worker-fetch")) checkSettingFiles(settings);
  const containers = await Promise.all(kinds.map((kind) => create(kind, settings)));
  const doors = containers.filter((_, i) => kinds[i] === "gateway");
  const others = containers.filter((container) => !doors.includes(container));
  const stopAll = async () => {
    await Promise.all(doors.map((container) => container.stop()));
    await Promise.all(others.map((container) => container.stop()));
  };
  const starting = startAll(containers);
  try {
    // A stop need not wait for the start: stopping a container ends its start.
    await Promise.race([starting, untilAborted(context.stop)]).catch((error: unknown) => {
      throw toStoreError(error);
    });
    if (!context.stop.aborted) context.ready();
    await untilAborted(context.stop);
  } finally {
    await stopAll();
    await starting.catch(() => undefined);
  }
}

/** What a person can put right is told without a stack: here, a browser that is not there. */
async function create(kind: ProcessKind, settings: Settings): Promise<Container> {
  try {
    return await PROCESSES[kind].create(settings);
  } catch (error) {
    if (error instanceof Error && error.name === "ChromiumMissing") throw new CliError("USAGE", error.message);
    throw error;
  }
}

async function startAll(containers: readonly Container[]): Promise<void> {
  for (const container of containers) await container.start();
}

/** Services that share a process each listen on the loopback port that their own URL names. */
function withPortsOfUrls(settings: Settings): Settings {
  const ports = Object.fromEntries(SERVICE_NAMES.map((name) => [name, portOf(settings.internal.urls[name])]));
  return {
    ...settings,
    internal: { ...settings.internal, host: "127.0.0.1", ports: ports as Record<ServiceName, number> },
  };
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}
