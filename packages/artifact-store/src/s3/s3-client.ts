import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Readable } from "node:stream";
import { StoreUnavailable } from "../store-unavailable.ts";
import { toS3Fault } from "./s3-fault.ts";
import type { S3Settings, S3Tuning } from "./s3-settings.ts";

/** The SDK's parts that are used here. Loaded when a store is started: 80 MB of resident memory that others don't pay. */
export async function loadSdk() {
  const [client, presigner] = await Promise.all([
    import("@aws-sdk/client-s3"),
    import("@aws-sdk/s3-request-presigner"),
  ]);
  return { ...client, getSignedUrl: presigner.getSignedUrl };
}
/** Those parts. */
export type Sdk = Awaited<ReturnType<typeof loadSdk>>;

type Client = InstanceType<Sdk["S3Client"]>;

/** A request's body: read anew for every try of the request, which says its length and hash beforehand. */
export type RequestBody = {
  readonly sizeBytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
  open(): Readable;
};

/** A command of the SDK, as far as it is changed here before it is sent. */
export type Command = { readonly middlewareStack: { add(middleware: never, options: never): void } };

/** One service, by one key. */
export type S3Client = {
  readonly sdk: Sdk;
  readonly client: Client;
  /**
   * Runs one call, `send` inside it, with a signal that stops it. Errors are the SDK's own: the code of a refusal decides what
   * comes next.
   */
  call<T>(run: (client: Client, options: { readonly abortSignal: AbortSignal }) => Promise<T>): Promise<T>;
  /** The same for a command that carries a body. */
  callWith<C extends Command, T>(
    command: C,
    body: RequestBody,
    run: (client: Client, command: C, options: { readonly abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T>;
  /** Ends every call that runs and closes every connection. Idempotent. */
  close(): void;
};

/** Tries of one request, the first included; between them the SDK's jittered backoff, within its budget for a service that is down. */
const TRIES = 3;
/** Connections at once. A request that waits longer than the connect timeout for one of them counts as a failed connect. */
const SOCKETS_MAX = 64;
const FREE_SOCKETS_MAX = 16;
/** Shorter than the idle time after which services and their balancers close: 4 s leaves no race with a close. */
const FREE_SOCKET_MS = 4_000;

/** A client for the service. Sends nothing yet. Everything that the SDK would look for in the environment is said here. */
export function openS3Client(sdk: Sdk, settings: S3Settings, tuning: S3Tuning): S3Client {
  const agent = {
    keepAlive: true,
    maxSockets: SOCKETS_MAX,
    maxFreeSockets: FREE_SOCKETS_MAX,
    timeout: FREE_SOCKET_MS,
    ...(tuning.lookup === null ? {} : { lookup: tuning.lookup }),
  };
  const running = new Set<AbortController>();
  let isClosed = false;
  const client = new sdk.S3Client({
    endpoint: settings.endpoint,
    region: settings.region,
    credentials: { accessKeyId: settings.accessKeyId, secretAccessKey: settings.secretAccessKey },
    forcePathStyle: settings.addressing === "PATH" && settings.dialect !== "OSS",
    // Whenever a checksum is "supported", the SDK sends bodies aws-chunked, which OSS refuses and others store as they came.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    maxAttempts: TRIES,
    retryMode: "standard",
    defaultsMode: "standard",
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    useArnRegion: false,
    disableMultiregionAccessPoints: true,
    disableS3ExpressSessionAuth: true,
    authSchemePreference: ["sigv4"],
    userAgentAppId: "",
    expectContinueHeader: false,
    requestHandler: {
      httpAgent: new HttpAgent(agent),
      httpsAgent: new HttpsAgent(agent),
      connectionTimeout: tuning.connectTimeoutMs,
      socketTimeout: tuning.idleTimeoutMs,
      requestTimeout: tuning.requestTimeoutMs,
      throwOnRequestTimeout: true,
      logger: SILENT,
    },
  });

  async function tracked<T>(run: (stop: AbortController) => Promise<T>): Promise<T> {
    if (isClosed) throw new StoreUnavailable("CLOSED");
    const stop = new AbortController();
    running.add(stop);
    try {
      return await run(stop);
    } finally {
      running.delete(stop);
    }
  }

  return {
    sdk,
    client,
    call: async (run) => tracked(async (stop) => run(client, { abortSignal: stop.signal })),
    callWith: async (command, body, run) =>
      tracked(async (stop) => {
        const source = attachBody(command, body, stop);
        try {
          return await run(client, command, { abortSignal: stop.signal });
        } catch (error) {
          throw source.fault ?? error;
        } finally {
          // A service that refuses before it has read the body leaves a request half sent: its connection goes.
          stop.abort();
        }
      }),
    close() {
      isClosed = true;
      for (const stop of running) stop.abort();
      client.destroy();
    },
  };
}

/** Adds a header to the command's request, before it is signed. */
export function addHeader(command: Command, name: string, value: string): void {
  addMiddleware(command, "build", `header ${name}`, (next) => async (args) => {
    args.request.headers[name] = value;
    return next(args);
  });
}

/**
 * Gives each try of the command a stream of its own, so that the SDK may send it again, which it never does with a body
 * that is a stream. Length and payload hash are said in headers: the signature covers the bytes, and the service checks
 * them where it checks hashes at all. A stream that fails ends the whole call with its own fault.
 */
function attachBody(command: Command, body: RequestBody, stop: AbortController): { fault: unknown } {
  const source: { fault: unknown } = { fault: null };
  addHeader(command, "content-length", String(body.sizeBytes));
  addHeader(command, "x-amz-content-sha256", body.sha256);
  addMiddleware(command, "deserialize", "open body", (next) => async (args) => {
    const stream = body.open();
    stream.once("error", (error) => {
      source.fault ??= toS3Fault(error);
      stop.abort();
    });
    try {
      return await next({ ...args, request: withBody(args.request, stream) });
    } finally {
      stream.destroy();
    }
  });
  return source;
}

function withBody(request: Request, body: Readable): Request {
  const copy = Object.create(Object.getPrototypeOf(request) as object) as Request;
  return Object.assign(copy, request, { body });
}

type Request = { headers: Record<string, string>; body?: unknown; query?: Record<string, unknown> };
type Args = { readonly request: Request };
type Middleware = (next: (args: Args) => Promise<unknown>) => (args: Args) => Promise<unknown>;

/** The SDK types its middleware by step, input and output; ours look at the request alone. */
export function addMiddleware(
  command: Command,
  step: "build" | "deserialize",
  name: string,
  middleware: Middleware,
): void {
  command.middlewareStack.add(middleware as never, { step, name, priority: "low", override: true } as never);
}

const SILENT = { trace: skip, debug: skip, info: skip, warn: skip, error: skip };

function skip(): void {
  // The SDK's warnings about busy sockets would go to standard error as text.
}
