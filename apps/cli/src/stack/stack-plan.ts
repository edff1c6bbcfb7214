import { FETCH_SLOTS_MAX, type ServiceName } from "@keble-scraper/service";

/** How many processes: every service and worker its own, or the services in one and each kind of worker in one. */
export const PROCESS_MODES = ["compact", "full"] as const;
export type ProcessMode = (typeof PROCESS_MODES)[number];

/** When a process is stopped: the door first, then what is in flight, then the services that it may still call. */
export const STOP_STAGES = ["GATEWAY", "WORKERS", "SERVICES"] as const;
export type StopStage = (typeof STOP_STAGES)[number];

/** One process of the stack. */
export type PlannedProcess = {
  readonly name: string;
  /** The names that `processes.json` gives to its pid. */
  readonly logicalNames: readonly string[];
  readonly args: readonly string[];
  /** Settings of its own, over those that all share. */
  readonly env: Readonly<Record<string, string>>;
  readonly stage: StopStage;
};

const MAINTENANCE = ["worker-maintenance", "worker-proxy-health", "beat"] as const;

/** The ports of the internal services. */
export type ServicePorts = Readonly<Record<ServiceName, number>>;

/** Every process of a local stack. Pure. */
export function planStack(options: {
  readonly mode: ProcessMode;
  /** At least 1. */
  readonly fetchWorkers: number;
  /** What each of them runs at once. */
  readonly fetchSlots: number;
  /** 0 where no route renders: a render worker could claim nothing. */
  readonly renderWorkers: 0 | 1;
  readonly ports: ServicePorts;
}): readonly PlannedProcess[] {
  const { ports, renderWorkers } = options;
  const fetchNames = Array.from({ length: options.fetchWorkers }, (_, i) => `worker-fetch-${i + 1}`);
  const renderNames = renderWorkers === 0 ? [] : ["worker-render"];
  return options.mode === "full"
    ? planFull(ports, fetchNames, renderNames)
    : planCompact(ports, fetchNames, renderNames, options.fetchSlots);
}

function planFull(
  ports: ServicePorts,
  fetchNames: readonly string[],
  renderNames: readonly string[],
): readonly PlannedProcess[] {
  const services = Object.entries(ports).map(([name, port]): PlannedProcess => ({
    name,
    logicalNames: [name],
    args: [name],
    env: { SCRAPER_INTERNAL_PORT: String(port), SCRAPER_LISTEN_HOST: "127.0.0.1" },
    stage: "SERVICES",
  }));
  const worker = (name: string, ...args: string[]): PlannedProcess => ({
    name,
    logicalNames: [name],
    args,
    env: {},
    stage: "WORKERS",
  });
  return [
    ...services,
    { name: "gateway", logicalNames: ["gateway"], args: ["gateway"], env: {}, stage: "GATEWAY" },
    ...fetchNames.map((name) => worker(name, "worker", "fetch")),
    ...renderNames.map((name) => worker(name, "worker", "render")),
    worker("worker-proxy-health", "worker", "proxy-health"),
    worker("worker-callbacks", "worker", "callbacks"),
    worker("worker-maintenance", "worker", "maintenance"),
    worker("beat", "beat"),
  ];
}

/**
 * The fetch workers of one process are one worker, as wide as all of them up to what a worker may be: how many suspect
 * jobs may run at once, and which connections may be shared, are rules of a process, and two workers in it know nothing
 * of each other. A render worker has a process of its own: its browsers may take a machine's memory, and nothing else
 * should go with it. What only looks at rows now and then shares one.
 */
function planCompact(
  ports: ServicePorts,
  fetchNames: readonly string[],
  renderNames: readonly string[],
  fetchSlots: number,
): readonly PlannedProcess[] {
  const services = [...Object.keys(ports), "gateway"];
  const slots = Math.min(fetchNames.length * fetchSlots, FETCH_SLOTS_MAX);
  const together = (name: string, logicalNames: readonly string[], kinds: readonly string[]): PlannedProcess => ({
    name,
    logicalNames,
    args: ["together", ...kinds],
    env: {},
    stage: name === "services" ? "GATEWAY" : "WORKERS",
  });
  return [
    together("services", services, services),
    { ...together("workers-fetch", fetchNames, ["worker-fetch"]), env: { SCRAPER_FETCH_SLOTS: String(slots) } },
    ...renderNames.map((name) => together(name, [name], ["worker-render"])),
    together("worker-callbacks", ["worker-callbacks"], ["worker-callbacks"]),
    together("maintenance", MAINTENANCE, MAINTENANCE),
  ];
}
