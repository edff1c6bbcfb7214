import { FETCH_SLOTS_MAX } from "@keble-scraper/service";
import { describe, expect, it } from "vitest";
import { planStack, PROCESS_MODES, type ProcessMode } from "./stack-plan.ts";

const ports = { intake: 1, fetching: 2, artifacts: 3, callbacks: 4, retention: 5 };
const SINGLE = [
  "gateway",
  ...Object.keys(ports),
  "worker-callbacks",
  "worker-maintenance",
  "worker-proxy-health",
  "beat",
];

describe("planStack", () => {
  it("gives every service and worker its own process, each service with its own port", () => {
    const plan = planStack({ mode: "full", fetchWorkers: 2, fetchSlots: 100, renderWorkers: 0, ports });
    expect(plan.map(({ name }) => name).toSorted()).toEqual([...SINGLE, "worker-fetch-1", "worker-fetch-2"].toSorted());
    for (const { name, logicalNames, env } of plan) {
      expect(logicalNames).toEqual([name]);
      const port = Object.entries(ports).find(([service]) => service === name)?.[1];
      expect(env["SCRAPER_INTERNAL_PORT"]).toBe(port === undefined ? undefined : String(port));
    }
  });

  it("names the same logical processes in four real ones when compact", () => {
    const plan = planStack({ mode: "compact", fetchWorkers: 2, fetchSlots: 100, renderWorkers: 0, ports });
    expect(plan).toHaveLength(4);
    const full = planStack({ mode: "full", fetchWorkers: 2, fetchSlots: 100, renderWorkers: 0, ports });
    const namesOf = (list: typeof plan) => list.flatMap(({ logicalNames }) => logicalNames).toSorted();
    expect(namesOf(plan)).toEqual(namesOf(full));
  });

  it("gives pages that are rendered a process of their own, where a route renders", () => {
    for (const mode of PROCESS_MODES) {
      const without = planStack({ mode, fetchWorkers: 1, fetchSlots: 100, renderWorkers: 0, ports });
      const plan = planStack({ mode, fetchWorkers: 1, fetchSlots: 100, renderWorkers: 1, ports });
      expect(without.flatMap(({ args }) => args)).not.toContain("render");
      expect(plan).toHaveLength(without.length + 1);
      expect(plan.find(({ name }) => name === "worker-render")).toMatchObject({
        logicalNames: ["worker-render"],
        args: mode === "full" ? ["worker", "render"] : ["together", "worker-render"],
        stage: "WORKERS",
      });
    }
  });

  it("runs proxy-health by itself when full, beside maintenance when compact", () => {
    const of = (mode: ProcessMode) =>
      planStack({ mode, fetchWorkers: 1, fetchSlots: 100, renderWorkers: 0, ports }).find(({ logicalNames }) =>
        logicalNames.includes("worker-proxy-health"),
      );
    expect(of("full")?.args).toEqual(["worker", "proxy-health"]);
    expect(of("compact")?.args).toEqual(["together", "worker-maintenance", "worker-proxy-health", "beat"]);
  });

  // Each worker counts the suspect jobs that it runs: two of them in a process would let in two.
  it("J4 puts all fetch workers of a compact stack into one, with the slots of all", () => {
    const widthOf = (fetchWorkers: number, fetchSlots: number) => {
      const plan = planStack({ mode: "compact", fetchWorkers, fetchSlots, renderWorkers: 0, ports });
      expect(plan.flatMap(({ args }) => args).filter((arg) => arg === "worker-fetch")).toHaveLength(1);
      const worker = plan.find(({ args }) => args.includes("worker-fetch"));
      expect(worker?.logicalNames).toEqual(Array.from({ length: fetchWorkers }, (_, i) => `worker-fetch-${i + 1}`));
      return worker?.env["SCRAPER_FETCH_SLOTS"];
    };
    expect(widthOf(1, 100)).toBe("100");
    expect(widthOf(3, 20)).toBe("60");
    expect(widthOf(32, 1_000)).toBe(String(FETCH_SLOTS_MAX));
  });

  it("stops the gateway before the workers, and the workers before the services", () => {
    const stages = new Map(
      planStack({ mode: "full", fetchWorkers: 1, fetchSlots: 100, renderWorkers: 0, ports }).map(({ name, stage }) => [
        name,
        stage,
      ]),
    );
    expect(stages.get("gateway")).toBe("GATEWAY");
    for (const name of Object.keys(ports)) expect(stages.get(name)).toBe("SERVICES");
    for (const name of ["worker-fetch-1", "worker-callbacks", "worker-proxy-health", "worker-maintenance", "beat"]) {
      expect(stages.get(name)).toBe("WORKERS");
    }
  });
});
