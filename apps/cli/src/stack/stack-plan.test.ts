import { describe, expect, it } from "vitest";
import { planStack } from "./stack-plan.ts";

const ports = { intake: 1, fetching: 2, artifacts: 3, callbacks: 4, retention: 5 };
const SINGLE = ["gateway", ...Object.keys(ports), "worker-callbacks", "worker-maintenance", "beat"];

describe("planStack", () => {
  it("gives every service and worker its own process, each service with its own port", () => {
    const plan = planStack({ mode: "full", fetchWorkers: 2, ports });
    expect(plan.map(({ name }) => name).toSorted()).toEqual([...SINGLE, "worker-fetch-1", "worker-fetch-2"].toSorted());
    for (const { name, logicalNames, env } of plan) {
      expect(logicalNames).toEqual([name]);
      const port = Object.entries(ports).find(([service]) => service === name)?.[1];
      expect(env["SCRAPER_INTERNAL_PORT"]).toBe(port === undefined ? undefined : String(port));
    }
  });

  it("names the same logical processes in four real ones when compact", () => {
    const plan = planStack({ mode: "compact", fetchWorkers: 2, ports });
    expect(plan).toHaveLength(4);
    const full = planStack({ mode: "full", fetchWorkers: 2, ports });
    const namesOf = (list: typeof plan) => list.flatMap(({ logicalNames }) => logicalNames).toSorted();
    expect(namesOf(plan)).toEqual(namesOf(full));
    expect(plan.find(({ name }) => name === "workers-fetch")?.args).toEqual([
      "together",
      "worker-fetch",
      "worker-fetch",
    ]);
  });

  it("stops the gateway before the workers, and the workers before the services", () => {
    const stages = new Map(planStack({ mode: "full", fetchWorkers: 1, ports }).map(({ name, stage }) => [name, stage]));
    expect(stages.get("gateway")).toBe("GATEWAY");
    for (const name of Object.keys(ports)) expect(stages.get(name)).toBe("SERVICES");
    for (const name of ["worker-fetch-1", "worker-callbacks", "worker-maintenance", "beat"]) {
      expect(stages.get(name)).toBe("WORKERS");
    }
  });
});
