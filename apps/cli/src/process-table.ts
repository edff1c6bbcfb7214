import type { Container, Settings } from "@keble-scraper/service";

/** How one kind of process is made and what the help says of it. */
type ProcessEntry = {
  readonly help: string;
  /** Loads the app only when it is wanted: a process pays for no other one's imports. */
  readonly create: (settings: Settings) => Promise<Container>;
};

/** Every kind of process that runs until it is told to end. */
export const PROCESSES = {
  gateway: {
    help: "Run the public door: REST /v1 and tRPC /trpc",
    create: async (settings) => (await import("@keble-scraper/gateway/app")).createGateway(settings),
  },
  intake: {
    help: "Run the service that accepts, reads and cancels jobs",
    create: async (settings) => (await import("@keble-scraper/intake/app")).createIntake(settings),
  },
  fetching: {
    help: "Run the service that knows the ways out",
    create: async (settings) => (await import("@keble-scraper/fetching/app")).createFetching(settings),
  },
  artifacts: {
    help: "Run the service of artifacts and downloads",
    create: async (settings) => (await import("@keble-scraper/artifacts/app")).createArtifacts(settings),
  },
  callbacks: {
    help: "Run the service of callback endpoints and events",
    create: async (settings) => (await import("@keble-scraper/callbacks/app")).createCallbacks(settings),
  },
  retention: {
    help: "Run the service that says how the deployment is doing",
    create: async (settings) => (await import("@keble-scraper/retention/app")).createRetention(settings),
  },
  "worker-fetch": {
    help: "Run a worker that fetches",
    create: async (settings) => (await import("@keble-scraper/fetching/app")).createFetchWorker(settings),
  },
  "worker-render": {
    help: "Run a worker that renders pages, by a Chromium of its own or a supplier's",
    create: async (settings) => (await import("@keble-scraper/fetching/render")).createRenderWorker(settings),
  },
  "worker-proxy-health": {
    help: "Run the worker that asks suppliers of quarantined routes whether they serve again",
    create: async (settings) => (await import("@keble-scraper/fetching/app")).createProxyHealthWorker(settings),
  },
  "worker-callbacks": {
    help: "Run a worker that delivers callbacks",
    create: async (settings) => (await import("@keble-scraper/callbacks/app")).createCallbacksWorker(settings),
  },
  "worker-maintenance": {
    help: "Run the worker that recovers lost work, ends what is overdue and announces what is due",
    create: async (settings) => (await import("@keble-scraper/retention/app")).createMaintenanceWorker(settings),
  },
  beat: {
    help: "Ring maintenance at its interval; two of them are harmless",
    create: async (settings) => (await import("@keble-scraper/retention/app")).createBeat(settings),
  },
} as const satisfies Record<string, ProcessEntry>;

/** One of those kinds. */
export type ProcessKind = keyof typeof PROCESSES;

/** Whether a text names a kind of process. */
export function isProcessKind(text: string): text is ProcessKind {
  return Object.hasOwn(PROCESSES, text);
}
