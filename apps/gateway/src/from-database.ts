import { isDatabaseOutage } from "@keble-scraper/db";
import { DependencyUnavailable } from "@keble-scraper/service";

/** Runs what asks the database; an outage of it is DependencyUnavailable, any other error comes through as it is. */
export async function fromDatabase<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw isDatabaseOutage(error) ? new DependencyUnavailable("database", "UNREACHABLE", { cause: error }) : error;
  }
}

/**
 * A read's answer, or DependencyUnavailable once it has taken `milliseconds`: statements may wait in a pool whose connections
 * are being made anew. Whatever comes of it later harms nobody.
 */
export async function inTime<T>(read: Promise<T>, milliseconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new DependencyUnavailable("database", "TIMEOUT")), milliseconds);
  });
  try {
    return await Promise.race([read, late]);
  } finally {
    clearTimeout(timer);
  }
}
