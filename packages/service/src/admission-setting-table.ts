import { choice, count, milliseconds, number } from "./setting.ts";

/** The settings of what every host and every wait is held to. */
export const ADMISSION_SETTINGS = {
  SCRAPER_HOST_REQUESTS_PER_SECOND: number({
    default: 5,
    min: 0.01,
    max: 10_000,
    unit: "requests a second",
    help: "The most requests that one public host gets in any second, over all workers and routes. A crawl-delay makes it fewer.",
    readBy: ["worker-fetch", "worker-render"],
  }),
  SCRAPER_HOST_CONCURRENCY: count({
    default: 4,
    max: 10_000,
    unit: "requests",
    help: "The most requests that are under way to one public host at once, over all workers and routes.",
    readBy: ["worker-fetch", "worker-render"],
  }),
  SCRAPER_HOST_HOLD_SECONDS_MAX: number({
    default: 3_600,
    min: 1,
    max: 86_400,
    unit: "seconds",
    help: "The longest that a target's Retry-After keeps other jobs off its host.",
    readBy: ["worker-fetch", "worker-render"],
  }),
  SCRAPER_HOST_POLICY_FOR_ALLOWED: choice({
    values: ["on", "off"],
    default: "off",
    help: "Whether the rate and concurrency of public hosts also hold for SCRAPER_DEVELOPMENT_ALLOWED_TARGETS.",
    readBy: ["worker-fetch", "worker-render"],
  }),
  SCRAPER_ADMISSION_WAIT_MS: milliseconds({
    default: 5_000,
    max: 60_000,
    help: "The longest that a job waits in a worker for its turn; past it nothing is booked and the job is due again later.",
    readBy: ["worker-fetch", "worker-render"],
  }),
  SCRAPER_STICKY_SESSION_SECONDS: number({
    default: 600,
    min: 1,
    max: 86_400,
    unit: "seconds",
    help: "How long jobs of one `stickyKey` share an exit after the last of them.",
    readBy: ["worker-fetch", "worker-render"],
  }),
} as const;
