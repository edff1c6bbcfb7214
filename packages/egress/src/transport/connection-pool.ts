import type { VettedUrl } from "../policy/vet-url.ts";
import type { Connection, ConnectionOwner } from "./connection.ts";

/**
 * What a socket may be shared by. A robots.txt is nobody's: its `callerId` is empty. Only equal keys reuse a connection, and
 * none does where `reuse` is NEVER: a metered route closes each connection with its exchange, so that no byte of it is
 * counted on another attempt.
 */
export type ConnectionScope = {
  readonly transport: "HTTP" | "ROBOTS" | "CALLBACK";
  readonly route: string;
  readonly callerId: string;
  readonly reuse?: "NEVER";
};

/**
 * The key of a connection to one vetted address for one URL's host. Only the caller's id could hold a space, and it comes
 * last: different parts never make equal keys.
 */
export function connectionKey(scope: ConnectionScope, url: VettedUrl, address: string): string {
  return `${scope.transport} ${scope.route} ${url.protocol} ${url.name ?? ""} ${url.port} ${address} ${scope.callerId}`;
}

/** Resting connections, newest first within a key. It knows nothing of addresses: whoever takes one has vetted again. */
export type ConnectionPool = {
  /** An open, quiet connection of that key, which then is the taker's; null when there is none. */
  take(key: string): Connection | null;
  /** Keeps a connection whose response ended cleanly, unless it closes or receives a byte within this turn of the loop. */
  put(connection: Connection): void;
  /** Connections at rest. */
  size(): number;
  /** Closes all and keeps none from here on. */
  close(): void;
};

/** `idleMax` bounds the connections at rest over all keys; the one that rested longest is closed for a new one. */
export function createConnectionPool(idleMax: number): ConnectionPool {
  /** In the order in which they came to rest. */
  const resting = new Set<Connection>();
  const byKey = new Map<string, Connection[]>();
  let isClosed = false;

  const remove = (connection: Connection): void => {
    if (!resting.delete(connection)) return;
    connection.owner = null;
    const sameKey = byKey.get(connection.key);
    const index = sameKey?.lastIndexOf(connection) ?? -1;
    if (index !== -1) sameKey?.splice(index, 1);
    if (sameKey?.length === 0) byKey.delete(connection.key);
  };

  const owner: ConnectionOwner = { onConnectionClosed: remove };

  const keep = (connection: Connection): void => {
    if (isClosed || idleMax === 0 || !connection.isOpen || !connection.isQuiet) {
      connection.destroy();
      return;
    }
    const [oldest] = resting;
    if (resting.size >= idleMax && oldest !== undefined) {
      remove(oldest);
      oldest.destroy();
    }
    resting.add(connection);
    const sameKey = byKey.get(connection.key);
    if (sameKey === undefined) byKey.set(connection.key, [connection]);
    else sameKey.push(connection);
    connection.owner = owner;
  };

  return {
    take(key) {
      for (;;) {
        const connection = byKey.get(key)?.at(-1);
        if (connection === undefined) return null;
        remove(connection);
        if (connection.isOpen && connection.isQuiet) return connection;
        connection.destroy();
      }
    },
    put(connection) {
      // The parser meets bytes behind the response's end only after it told us of the end.
      setImmediate(keep, connection);
    },
    size: () => resting.size,
    close() {
      isClosed = true;
      for (const connection of resting) {
        remove(connection);
        connection.destroy();
      }
    },
  };
}
