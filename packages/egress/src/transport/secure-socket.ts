import type { Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";

/** `name`: what SNI sends and the certificate must carry; null for an address literal, whose certificate must carry `address`. */
export type SecureTarget = { readonly name: string | null; readonly address: string };

/**
 * Begins TLS over a connected raw socket, the same for every route: TLS 1.2 or newer, HTTP/1.1 only, the certificate
 * verified for the target's name whatever the environment says, no session kept. `authorities` in PEM replace Node's; absent
 * means Node's. The caller listens for `secureConnect` and `error` and destroys the raw socket when it gives up.
 */
export function secureSocket(raw: Socket, target: SecureTarget, authorities?: readonly string[]): TLSSocket {
  const secured = connectTls({
    socket: raw,
    host: target.name ?? target.address,
    servername: target.name ?? "",
    ALPNProtocols: ["http/1.1"],
    minVersion: MIN_VERSION,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED changes nothing.
    rejectUnauthorized: true,
    ...(authorities === undefined ? {} : { secureContext: contextOf(authorities) }),
  });
  securedOver.set(raw, secured);
  return secured;
}

const securedOver = new WeakMap<Socket, TLSSocket>();

/**
 * Destroys a raw socket from the top. One that is destroyed under its TLS makes the next read of what TLS still holds close
 * that socket in the middle of the read, which undici's parser answers with an uncaught assertion (Node 20.20, undici 7.30).
 */
export function destroySocket(raw: Socket, error?: Error): void {
  (securedOver.get(raw) ?? raw).destroy(error);
}

const MIN_VERSION = "TLSv1.2";

const contexts = new WeakMap<readonly string[], SecureContext>();

/** Reading a store of 150 authorities takes milliseconds: once per list, not once per connection. */
function contextOf(authorities: readonly string[]): SecureContext {
  const known = contexts.get(authorities);
  if (known !== undefined) return known;
  const made = createSecureContext({ ca: [...authorities], minVersion: MIN_VERSION });
  contexts.set(authorities, made);
  return made;
}
