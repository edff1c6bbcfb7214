import type { Socket } from "node:net";
import { Client, type Dispatcher } from "undici";
import { PEER_RESET } from "./classify-error.ts";
import type { EgressLimits } from "./egress-limits.ts";

/** What a connection tells its user while it carries a request. */
export type ConnectionWatcher = {
  /** More bytes than the ceiling arrived since the request began. */
  onCeiling(): void;
};

/** Where a connection rests. */
export type ConnectionOwner = { onConnectionClosed(connection: Connection): void };

/**
 * One dialled socket with undici's HTTP/1.1 parser on it. It carries one request at a time, never dials by itself, and
 * counts what arrives, also while it rests: a byte that nobody asked for ends it.
 */
export class Connection {
  readonly key: string;
  readonly #socket: Socket;
  readonly #client: Client;
  #watcher: ConnectionWatcher | null = null;
  #owner: ConnectionOwner | null = null;
  #bytesAtStart = 0;
  #ceilingBytes = 0;
  #isIdle = true;
  #isHeld = false;

  /** `key` says what the socket may be used for again: see `connectionKey`. */
  constructor(key: string, socket: Socket, limits: EgressLimits) {
    this.key = key;
    this.#socket = socket;
    // A tunnel's head came over the same socket; what lies unread behind it was not asked for.
    this.#bytesAtStart = socket.bytesRead - socket.readableLength;
    let isTaken = false;
    // The scheme is always http here: TLS is done, and undici must have no second opinion about server names.
    this.#client = new Client("http://pinned.invalid", {
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: limits.idleSocketMs,
      keepAliveMaxTimeout: limits.idleSocketMs,
      keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
      connect(_options, callback) {
        // A client whose socket is gone would dial again; this one has nothing to dial with.
        const isGone = isTaken || socket.destroyed;
        isTaken = true;
        // undici does not go on when it is answered within its own call.
        queueMicrotask(() => {
          if (isGone) callback(new ConnectionGone(), null);
          else callback(null, socket);
        });
      },
    });
    // undici takes a reset behind an announced close for the body's end, and asserts when it comes at a bad moment.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNRESET") error.code = PEER_RESET;
    });
    const read = socket.read.bind(socket);
    socket.read = (size?: number): unknown => (this.#isHeld && size !== 0 ? null : read(size));
    socket.once("close", () => this.#owner?.onConnectionClosed(this));
    socket.on("readable", () => {
      this.#onBytes();
    });
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && this.#socket.writable;
  }

  /** Bytes that arrived (behind TLS) since the request began. */
  get receivedBytes(): number {
    return this.#socket.bytesRead - this.#bytesAtStart;
  }

  /** Whether nothing arrived since the last request ended. */
  get isQuiet(): boolean {
    return this.#isIdle && this.receivedBytes === 0 && this.#socket.readableLength === 0;
  }

  /** Sends one request. `watcher` is called at most once, and not after `rest` or `destroy`. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(options, handler);
  }

  /** The request's bytes go out now: what arrives from here on is counted against `ceilingBytes`. */
  begin(ceilingBytes: number, watcher: ConnectionWatcher): void {
    this.#isIdle = false;
    this.#ceilingBytes = ceilingBytes;
    this.#watcher = watcher;
  }

  /**
   * Stops taking bytes from the socket until `release`; what was read already still comes. undici's own pause is not
   * used: a socket that ends while its parser is paused fails an assertion, outside of any request (7.30).
   */
  hold(): void {
    this.#isHeld = true;
  }

  /** Takes bytes again. */
  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#socket.emit("readable");
  }

  /** Sets the ceiling that holds from here on, counted from the request's begin. */
  allow(ceilingBytes: number): void {
    this.#ceilingBytes = ceilingBytes;
    this.#onBytes();
  }

  /** The response has ended: every byte from now on is one too many. */
  rest(): void {
    this.#watcher = null;
    this.#isIdle = true;
    this.#bytesAtStart = this.#socket.bytesRead;
  }

  /** Whom to tell that the socket closed: the pool it rests in, or nobody. */
  set owner(owner: ConnectionOwner | null) {
    this.#owner = owner;
  }

  /** Closes the socket at once. */
  destroy(): void {
    this.#watcher = null;
    // With an error, so that undici does not take the close for the end of a body.
    this.#socket.destroy(new ConnectionClosed());
    void this.#client.destroy().catch(() => {});
  }

  #onBytes(): void {
    if (this.#isIdle) {
      if (this.receivedBytes > 0) this.destroy();
      return;
    }
    if (this.receivedBytes <= this.#ceilingBytes) return;
    const watcher = this.#watcher;
    this.#watcher = null;
    watcher?.onCeiling();
  }
}

/** What `dispatch` answers when the socket was gone before anything was sent. */
export class ConnectionGone extends Error {
  override name = "ConnectionGone";
}

/** What our own closing of a socket looks like to its listeners. */
class ConnectionClosed extends Error {
  override name = "ConnectionClosed";
  readonly code = "UND_ERR_ABORTED";
}

/** A server that says `Keep-Alive: timeout=5` closes at 5 s; we stop using the socket this much earlier. */
const KEEP_ALIVE_MARGIN_MS = 1_000;
