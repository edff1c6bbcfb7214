import type { RouteState } from "@keble-scraper/contract";

/** What intake knows of the routes. */
export type RouteCatalogue = { list(): Promise<readonly RouteState[]> };

/** Routes change with deployments: half a minute is soon enough. */
const FRESH_MS = 30_000;

/**
 * The routes as fetching tells them, remembered for half a minute and, while fetching can't be asked, for as long as it
 * takes: a job may be accepted while the engine restarts. Throws only when they were never known.
 */
export function createRouteCatalogue(options: {
  ask(): Promise<readonly RouteState[]>;
  monotonicMs(): number;
}): RouteCatalogue {
  let known: readonly RouteState[] | null = null;
  let askedAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<readonly RouteState[]> | null = null;

  async function ask(): Promise<readonly RouteState[]> {
    try {
      known = await options.ask();
      return known;
    } catch (error) {
      if (known === null) throw error;
      return known;
    } finally {
      askedAt = options.monotonicMs();
      asking = null;
    }
  }

  return {
    async list() {
      if (known !== null && options.monotonicMs() - askedAt < FRESH_MS) return known;
      asking ??= ask();
      return asking;
    },
  };
}
