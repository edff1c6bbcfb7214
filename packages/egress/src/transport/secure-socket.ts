import type { Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";

/** `name`: what SNI sends and the certificate must carry; null for an address literal, whose certificate must carry `address`. */
export type SecureTarget = { readonly name: string | null; readonly address: string };

/**
 * Begins TLS over a connected raw socket, the same for every route: TLS 1.2 or newer, HTTP/1.1 only, the certificate
 * verified for the target's name whatever the environment says, no session kept. `authorities` in PEM replace Node's; absent
 * means Node's. The caller listens for `secureConnect` and `error` and destroys the raw socket when it gives up.
 */
export function secureSocket(raw: Socket, target: SecureTarget, authorities?: readonly string[]): TLSSocket {
  return connectTls({
    socket: raw,
    host: target.name ?? target.address,
    servername: target.name ?? "",
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED changes nothing.
    rejectUnauthorized: true,
    ...(authorities === undefined ? {} : { ca: [...authorities] }),
  });
}
