import { count, milliseconds, number, text } from "./setting.ts";
import { lineParser, parseHostPorts, parsePath, urlParser } from "./setting-parsers.ts";

/** The most jobs that one fetch worker runs at once. */
export const FETCH_SLOTS_MAX = 1_000;

/** The settings of fetching and rendering, whatever the route. */
export const FETCHING_SETTINGS = {
  SCRAPER_FETCH_SLOTS: count({
    default: 100,
    max: FETCH_SLOTS_MAX,
    unit: "jobs",
    help: "How many jobs one fetch worker runs at once.",
    readBy: ["worker-fetch"],
  }),
  SCRAPER_SPOOL_DIRECTORY: text({
    kind: "path",
    expects: "a path",
    default: "none",
    absentHelp: "`spool` under SCRAPER_STATE_DIRECTORY",
    parse: parsePath,
    help: "Where a fetch worker keeps bodies over 256 KiB until they are stored.",
    readBy: ["worker-fetch", "worker-render"],
  }),
  SCRAPER_HTTP_ATTEMPT_SECONDS: number({
    default: 60,
    min: 0.1,
    max: 3_600,
    unit: "seconds",
    help: "The hard limit of one HTTP attempt, redirects included.",
    readBy: ["fetching", "worker-fetch"],
  }),
  SCRAPER_CONNECT_TIMEOUT_MS: milliseconds({
    default: 10_000,
    max: 600_000,
    help: "The limit of one connection, TLS included.",
    readBy: ["worker-fetch", "worker-render", "worker-callbacks"],
  }),
  SCRAPER_RESPONSE_TIMEOUT_MS: milliseconds({
    default: 30_000,
    max: 3_600_000,
    help: "The limit from the request to the response's head.",
    readBy: ["worker-fetch", "worker-render"],
  }),
  SCRAPER_BODY_IDLE_TIMEOUT_MS: milliseconds({
    default: 15_000,
    max: 3_600_000,
    help: "The longest silence inside a body.",
    readBy: ["worker-fetch", "worker-render"],
  }),
  SCRAPER_BODY_BYTES_MAX: count({
    default: 104_857_600,
    min: 10_485_760,
    max: 2_147_483_647,
    unit: "bytes",
    help: "The most that a job may ask for in `limits.maxBodyBytes`, decoded. No less than what a job that names none asks for, or every such job would be refused.",
    readBy: ["intake", "worker-fetch", "worker-render"],
  }),
  SCRAPER_USER_AGENT: text({
    kind: "text",
    expects: "up to 256 printable ASCII characters",
    default: { text: "KebleScraper/0.1" },
    parse: lineParser(256),
    help: "The `user-agent` of a job that names none, of robots requests, of callbacks and of questions to suppliers.",
    readBy: ["worker-fetch", "worker-render", "worker-proxy-health", "worker-callbacks"],
  }),
  SCRAPER_CONTACT: text({
    kind: "text",
    expects: "up to 200 printable ASCII characters",
    default: "none",
    parse: lineParser(200),
    help: "How a site's owner reaches the operator, added to the user agent as `(+…)`.",
    readBy: ["worker-fetch", "worker-render", "worker-proxy-health", "worker-callbacks"],
  }),
  SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: text({
    kind: "list",
    expects: "host:port pairs in their plain spelling, separated by commas, at most 64",
    default: "none",
    parse: parseHostPorts,
    help: "Private targets that jobs may name, by exact host and port. Refused outside development and test.",
    readBy: ["intake", "worker-fetch", "worker-render"],
  }),
  SCRAPER_RENDER_SLOTS: count({
    default: 4,
    max: 100,
    unit: "jobs",
    help: "How many pages one render worker renders at once: each takes a few hundred megabytes.",
    readBy: ["worker-render"],
  }),
  SCRAPER_UNLOCKER_ATTEMPT_SECONDS: number({
    default: 180,
    min: 0.1,
    max: 3_600,
    unit: "seconds",
    help: "The hard limit of one attempt by UNLOCKER, which itself may wait 150 s for a page.",
    readBy: ["fetching", "worker-fetch"],
  }),
  SCRAPER_RENDER_ATTEMPT_SECONDS: number({
    default: 180,
    min: 0.1,
    max: 3_600,
    unit: "seconds",
    help: "The hard limit of one attempt to render a page.",
    readBy: ["fetching", "worker-render"],
  }),
  SCRAPER_DEVELOPMENT_HTTP_PROXY_URL: text({
    kind: "url",
    expects: "an http URL",
    default: "none",
    secret: true,
    parse: urlParser(["http"]),
    help: "A proxy that DIRECT leaves by on a developer's machine. Goes with SCRAPER_DEVELOPMENT_DNS_OVER_HTTPS_URL; refused outside development and test.",
    readBy: ["worker-fetch"],
  }),
  SCRAPER_DEVELOPMENT_DNS_OVER_HTTPS_URL: text({
    kind: "url",
    expects: "an https URL without credentials or query; http for loopback",
    default: "none",
    parse: urlParser(["https", "http"], { bare: true }),
    help: "Where names are resolved, through that proxy, when the machine has no way to public DNS.",
    readBy: ["worker-fetch"],
  }),
} as const;
