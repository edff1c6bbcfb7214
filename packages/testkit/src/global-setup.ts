import type { TestProject } from "vitest/node";
import { shareTestServers, type TestServers } from "./servers/test-servers.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly testServers: TestServers;
  }
}

/**
 * One Postgres cluster and one Redis for the whole run, however many projects it has. Test files get their addresses
 * through `createTestDatabase` and `testRedis`. Returns the teardown.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { servers, release } = await shareTestServers();
  project.provide("testServers", servers);
  return release;
}
