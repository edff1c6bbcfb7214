import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const conditions = ["@keble-scraper/source"];
const shared = {
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  // Global set-up files run in this environment; without it they would load what was built last, or nothing.
  environments: { __vitest__: { resolve: { conditions } } },
} as const;

/** vitest's own figure leaves one of two cores idle, while most files wait for servers and browsers. */
const maxWorkers = Math.max(2, availableParallelism() - 1);

/** One project per level of test. Integration and fault files share one Postgres and one Redis, started by testkit. */
export default defineConfig({
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: "unit",
          maxWorkers,
          include: ["packages/*/src/**/*.test.ts", "apps/*/src/**/*.test.ts", "db/src/**/*.test.ts"],
          retry: 0,
        },
      },
      {
        ...shared,
        test: {
          name: "integration",
          maxWorkers,
          include: [
            "packages/*/test/**/*.integration.test.ts",
            "apps/*/test/**/*.integration.test.ts",
            "db/test/**/*.integration.test.ts",
          ],
          globalSetup: ["packages/testkit/src/global-setup.ts"],
          testTimeout: 30_000,
          hookTimeout: 60_000,
          retry: 0,
        },
      },
      {
        ...shared,
        test: {
          name: "fault",
          include: [
            "packages/*/test/**/*.fault.test.ts",
            "apps/*/test/**/*.fault.test.ts",
            "db/test/**/*.fault.test.ts",
          ],
          globalSetup: ["packages/testkit/src/global-setup.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          retry: 0,
        },
      },
      {
        ...shared,
        test: {
          name: "e2e",
          include: ["e2e/flows/**/*.test.ts", "e2e/faults/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          retry: 0,
        },
      },
    ],
  },
});
