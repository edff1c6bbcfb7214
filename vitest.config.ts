import { defineConfig } from "vitest/config";

const conditions = ["@keble-scraper/source"];
const shared = {
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  // Global set-up files run in this environment; without it they would load what was built last, or nothing.
  environments: { __vitest__: { resolve: { conditions } } },
} as const;

/** One project per level of test. Integration and fault files share one Postgres and one Redis, started by testkit. */
export default defineConfig({
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: "unit",
          include: ["packages/*/src/**/*.test.ts", "apps/*/src/**/*.test.ts", "db/src/**/*.test.ts"],
          retry: 0,
        },
      },
      {
        ...shared,
        test: {
          name: "integration",
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
