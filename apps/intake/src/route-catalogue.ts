import type { RouteState } from "@keble-scraper/contract";

/** What intake knows of the routes. */
export type RouteCatalogue = {
  /** As they were within the last half minute: what accepting a job needs changes with deployments only. */
  list(): Promise<readonly RouteState[]>;
  /** As they were within the last second, quarantines included. */
  listNow(): Promise<readonly RouteState[]>;
};

const FRESH_MS = 30_000;
const NOW_MS = 1_000;

/**
 * The routes as fetching tells them, remembered for a while and, while fetching can't be asked, for as long as it takes:
 * a job may be accepted while the engine restarts. Throws only when they were never known.
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

  async function listWithin(freshMs: number): Promise<readonly RouteState[]> {
    if (known !== null && options.monotonicMs() - askedAt < freshMs) return known;
    asking ??= ask();
    return asking;
  }

  return { list: () => listWithin(FRESH_MS), listNow: () => listWithin(NOW_MS) };
}
