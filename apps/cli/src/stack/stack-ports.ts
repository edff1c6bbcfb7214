import { findFreePort, isPortFree } from "@keble-scraper/local-servers";
import { SERVICE_NAMES, type ServiceName } from "@keble-scraper/service";
import { CliError } from "../cli-error.ts";
import type { ServicePorts } from "./stack-plan.ts";

/** Where the parts of a local stack listen on 127.0.0.1. */
export type StackPorts = {
  readonly gateway: number;
  readonly services: ServicePorts;
  /** The local store's downloads. */
  readonly downloads: number;
};

/** Free ports, all different. `gatewayPort` is the one that is wanted, 0 for any; taken, it is PORT_TAKEN. */
export async function chooseStackPorts(gatewayPort: number): Promise<StackPorts> {
  const gateway = await chooseGatewayPort(gatewayPort);
  const ports = new Set([gateway]);
  while (ports.size < SERVICE_NAMES.length + 2) ports.add(await findFreePort());
  const [, downloads = 0, ...others] = ports;
  const services = Object.fromEntries(SERVICE_NAMES.map((name, i) => [name, others[i]]));
  return { gateway, downloads, services: services as Record<ServiceName, number> };
}

async function chooseGatewayPort(wanted: number): Promise<number> {
  if (wanted === 0) return findFreePort();
  if (await isPortFree(wanted)) return wanted;
  throw new CliError(
    "PORT_TAKEN",
    `Port ${wanted} is taken by another program. Stop that one, or set SCRAPER_GATEWAY_PORT (0 takes any free port).`,
  );
}
