import type { Socket } from "node:net";
import { destroySocket } from "./secure-socket.ts";

/**
 * What one attempt's sockets carry on a route that is paid by the byte: raw bytes, both directions, all hops, handshakes
 * and tunnels included.
 */
export type SocketMeter = {
  /** Counts a raw socket from its creation on; one that is tracked behind the ceiling is destroyed. */
  track(raw: Socket): void;
  /** So far; it stays readable after the sockets closed. */
  bytes(): number;
  /** Whether the ceiling was reached: then all its sockets are destroyed and the attempt ends as BODY_TOO_LARGE. */
  readonly isExceeded: boolean;
  /** Compares now. Called with every read of a response, and by itself every 50 ms for what no event shows. */
  check(): void;
  /** Stops looking; call it when the attempt has ended. */
  end(): void;
};

/** What one read of a socket may bring before anybody can look: the meter ends an attempt this far below its ceiling. */
const READ_BYTES_MAX = 64 * 1024;

/** Handshakes and tunnel heads raise no event that we see; they are small, and looked at this often. */
const LOOK_EVERY_MS = 50;

/** A meter of one attempt that ends it in time to stay below `ceilingBytes`. */
export function createSocketMeter(ceilingBytes: number): SocketMeter {
  const sockets = new Set<Socket>();
  const limitBytes = Math.max(0, ceilingBytes - READ_BYTES_MAX);
  let isExceeded = false;
  let timer: NodeJS.Timeout | undefined;

  const bytes = (): number => {
    let total = 0;
    for (const socket of sockets) total += socket.bytesRead + socket.bytesWritten;
    return total;
  };
  const end = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const check = (): void => {
    if (isExceeded || bytes() <= limitBytes) return;
    isExceeded = true;
    end();
    for (const socket of sockets) destroySocket(socket, new SocketCeilingReached());
  };

  return {
    track(raw) {
      // Whoever dialled it listens too; this one makes sure that our own destroying is never an uncaught error.
      raw.on("error", () => {});
      sockets.add(raw);
      if (isExceeded) raw.destroy(new SocketCeilingReached());
      else timer ??= setInterval(check, LOOK_EVERY_MS).unref();
    },
    bytes,
    get isExceeded() {
      return isExceeded;
    },
    check,
    end,
  };
}

/** What a metered socket's destruction looks like to its listeners. */
class SocketCeilingReached extends Error {
  override name = "SocketCeilingReached";
  readonly code = "UND_ERR_ABORTED";
}
