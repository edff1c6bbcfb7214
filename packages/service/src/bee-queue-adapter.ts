import type { EventEmitter } from "node:events";
import { createRequire } from "node:module";
import type { Link } from "./link-supervisor.ts";
import { withTimeout } from "./timeout.ts";

/** What is used of redis@3's client. Its own types are not published with it. */
type RedisClient = EventEmitter & {
  duplicate(): RedisClient;
  end(flush: boolean): void;
  send_command(name: string, args: readonly string[], done: (error: Error | null, reply: unknown) => void): boolean;
};
type RedisOptions = Readonly<Record<string, unknown>>;

/** What is used of Bee-Queue. Its bundled types need a package that redis@3 does not have. */
type Queue = EventEmitter & {
  connect(): Promise<unknown>;
  ready(): Promise<unknown>;
  createJob(data: object): { save(): Promise<unknown> };
  process(concurrency: number, handler: (job: { readonly data: unknown }) => Promise<void>): void;
  checkStalledJobs(): Promise<number>;
  close(timeoutMs: number): Promise<void>;
};

/** A connection to Redis, used once: it never reconnects by itself, because Bee-Queue would not load its scripts again. */
export type RedisLink = Link & { send(command: string, ...args: readonly string[]): Promise<unknown> };

/** Rings bells through one connection. */
export type RingLink = RedisLink & {
  ring(queue: string, payload: object): Promise<void>;
  /** Entries that wait to be taken. */
  waiting(queue: string): Promise<number>;
};

const load = createRequire(import.meta.url);
const redis = load("redis") as { createClient(options: RedisOptions): RedisClient };
const BeeQueue = load("bee-queue") as new (name: string, settings: object) => Queue;

/**
 * True for an answer that another connection would get as well, such as Redis being out of memory. A script that Redis
 * forgot (NOSCRIPT) is not one: opening a link loads the scripts.
 */
export function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError" && (error as { code?: unknown }).code !== "NOSCRIPT";
}

/** What a listener rings to hear itself. */
const CANARY = { canary: true } as const;

function isCanary(data: unknown): boolean {
  return typeof data === "object" && data !== null && "canary" in data;
}

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 2_000;
const CLOSE_TIMEOUT_MS = 500;

/** A pure doorbell: nothing is stored, retried, delayed or announced, and no id is ever chosen by us. */
const BELL_SETTINGS = {
  autoConnect: false,
  activateDelayedJobs: false,
  getEvents: false,
  removeOnFailure: true,
  removeOnSuccess: true,
  sendEvents: false,
  storeJobs: false,
} as const;

type Clients = { readonly command: RedisClient; readonly lost: Promise<void>; end(): void };

/**
 * Our own redis@3 clients, the duplicates that Bee-Queue makes of them included, so that all can be ended at any moment.
 * Each is lost at its first end or error.
 */
function openClients(redisUrl: string, options: RedisOptions): Clients {
  const all: RedisClient[] = [];
  let onLost = () => {};
  const lost = new Promise<void>((resolve) => {
    onLost = resolve;
  });
  function track(client: RedisClient): RedisClient {
    all.push(client);
    client.on("error", onLost);
    client.on("end", onLost);
    const duplicate = client.duplicate.bind(client);
    client.duplicate = () => track(duplicate());
    return client;
  }
  const command = track(
    redis.createClient({
      url: redisUrl,
      connect_timeout: CONNECT_TIMEOUT_MS,
      // Anything but a number ends the client instead of reconnecting it.
      retry_strategy: () => undefined,
      socket_keepalive: true,
      // A peer that vanished without a word is noticed by the kernel within about 20 s.
      socket_initial_delay: 10_000,
      no_ready_check: false,
      ...options,
    }),
  );
  return {
    command,
    lost,
    end() {
      for (const client of all) {
        client.end(true);
      }
    },
  };
}

async function openQueue(
  clients: Clients,
  prefix: string,
  name: string,
  isWorker: "worker" | "producer",
): Promise<Queue> {
  const queue = new BeeQueue(name, {
    ...BELL_SETTINGS,
    prefix,
    redis: clients.command,
    isWorker: isWorker === "worker",
    quitCommandClient: false,
  });
  // Bee-Queue repeats its clients' errors, and an emitter without a listener would end the process.
  queue.on("error", () => undefined);
  // `connect` never settles when the connection fails; `ready` does.
  void queue.connect();
  await queue.ready();
  return queue;
}

async function whenReady<T>(clients: Clients, opening: Promise<T>): Promise<T> {
  const lost = clients.lost.then((): never => {
    throw new Error("Redis is not reachable");
  });
  lost.catch(() => undefined);
  try {
    return await withTimeout(Promise.race([opening, lost]), CONNECT_TIMEOUT_MS, "opening a bell");
  } catch (error) {
    opening.catch(() => undefined);
    clients.end();
    throw error;
  }
}

function sender(client: RedisClient): RedisLink["send"] {
  return (command, ...args) =>
    withTimeout(
      new Promise((resolve, reject) => {
        client.send_command(command, args, (error, reply) => (error ? reject(error) : resolve(reply)));
      }),
      COMMAND_TIMEOUT_MS,
      command,
    );
}

/** Opens the ringing side of the named queues. Rejects within 5 s when Redis is away. */
export async function openRingLink(redisUrl: string, prefix: string, names: readonly string[]): Promise<RingLink> {
  // Without an offline queue a ring fails at once while Redis is away, instead of piling up in memory.
  const clients = openClients(redisUrl, { enable_offline_queue: false });
  const queues = new Map<string, Queue>();
  await whenReady(
    clients,
    (async () => {
      for (const name of names) {
        queues.set(name, await openQueue(clients, prefix, name, "producer"));
      }
    })(),
  );
  const send = sender(clients.command);
  return {
    lost: clients.lost,
    send,
    async ring(name, payload) {
      const queue = queues.get(name);
      if (!queue) {
        throw new Error(`there is no queue ${name}`);
      }
      await withTimeout(queue.createJob(payload).save(), COMMAND_TIMEOUT_MS, "ring");
    },
    waiting: async (name) => Number(await send("LLEN", `${prefix}:${name}:waiting`)),
    probe: async () => {
      await send("PING");
    },
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close(CLOSE_TIMEOUT_MS).catch(() => undefined)));
      clients.end();
    },
  };
}

/**
 * Opens the listening side of one queue: `onEntry` is called for each ring, returns at once and must not throw. The
 * probe rings a canary and throws when nothing at all has been heard since the last one. Listeners of one queue take
 * entries in turn, so with one canary each per interval every one of them hears one.
 */
export async function openListenLink(
  redisUrl: string,
  prefix: string,
  name: string,
  onEntry: () => void,
): Promise<RedisLink> {
  const clients = openClients(redisUrl, {});
  const queue = await whenReady(clients, openQueue(clients, prefix, name, "worker"));
  let heard = 0;
  let heardAtProbe = -1;
  queue.process(1, async ({ data }) => {
    heard += 1;
    if (!isCanary(data)) {
      onEntry();
    }
  });
  return {
    lost: clients.lost,
    send: sender(clients.command),
    async probe() {
      const silent = heard === heardAtProbe;
      heardAtProbe = heard;
      await withTimeout(queue.createJob(CANARY).save(), COMMAND_TIMEOUT_MS, "canary");
      // What a worker took and never ended, because it died in that millisecond, is put back by this.
      await withTimeout(queue.checkStalledJobs(), COMMAND_TIMEOUT_MS, "stalled check");
      if (silent) {
        throw new Error("no bell was heard since the last canary");
      }
    },
    async close() {
      await queue.close(CLOSE_TIMEOUT_MS).catch(() => undefined);
      clients.end();
    },
  };
}
