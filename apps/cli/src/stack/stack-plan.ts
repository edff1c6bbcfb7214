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

/** The ports of the internal services. */
export type ServicePorts = Readonly<Record<ServiceName, number>>;

/** Every process of a local stack. Pure. `fetchWorkers` is at least 1, `fetchSlots` what each of them runs at once. */
export function planStack(options: {
  readonly mode: ProcessMode;
  readonly fetchWorkers: number;
  readonly fetchSlots: number;
  readonly ports: ServicePorts;
}): readonly PlannedProcess[] {
  const fetchNames = Array.from({ length: options.fetchWorkers }, (_, i) => `worker-fetch-${i + 1}`);
  return options.mode === "full"
    ? planFull(options.ports, fetchNames)
    : planCompact(options.ports, fetchNames, options.fetchSlots);
}

function planFull(ports: ServicePorts, fetchNames: readonly string[]): readonly PlannedProcess[] {
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
    worker("worker-callbacks", "worker", "callbacks"),
    worker("worker-maintenance", "worker", "maintenance"),
    worker("beat", "beat"),
  ];
}

/**
 * The fetch workers of one process are one worker, as wide as all of them up to what a worker may be: how many suspect
 * jobs may run at once, and which connections may be shared, are rules of a process, and two workers in it know nothing
 * of each other.
 */
function planCompact(
  ports: ServicePorts,
  fetchNames: readonly string[],
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
    together("worker-callbacks", ["worker-callbacks"], ["worker-callbacks"]),
    together("maintenance", ["worker-maintenance", "beat"], ["worker-maintenance", "beat"]),
  ];
}
