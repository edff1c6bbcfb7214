import type { Socket } from "node:net";
import type { UpstreamFailure } from "@keble-scraper/contract";
import type { Reach } from "../policy/reach.ts";
import type { FailureKind } from "./failure-kind.ts";
import type { FetchRequest } from "./fetch-request.ts";
import type { Stop } from "./stop.ts";

/**
 * Where one hop goes. `addresses` were vetted for exactly this hop, the preferred one first, and a connection may go to
 * nothing else; nothing resolves a name again. `name`: the vetted name that led to them, null for an address literal; only a
 * tunnel that takes no addresses sends it anywhere. `reach`: of the vetted URL.
 */
export type DialTarget = {
  readonly addresses: readonly string[];
  readonly name: string | null;
  readonly port: number;
  readonly reach: Reach;
  /** The name that the certificate must carry and that SNI sends; an IP literal's certificate must carry the address. Null: no TLS. */
  readonly tls: { readonly name: string | null } | null;
};

/**
 * For whom a connection is dialled. `track` takes note of every raw socket, at once when it is made: it counts among the
 * client's sockets and on the attempt's meter, and is destroyed with the client. `egress` is the attempt's.
 */
export type DialContext = {
  readonly track: (raw: Socket) => void;
  readonly egress: FetchRequest["egress"];
};

/**
 * `socket` is ready for a request: TLS is done where the target wants it. `address`: which of the target's it leads to. ROUTE:
 * the route itself failed before the target was reached (a proxy refused, its password is wrong), and `failure` says so in
 * full. REFUSED: what answered on the way says that it leads to an address that may not be reached. `kind` otherwise: what
 * the network or the target did.
 */
export type DialResult =
  | { readonly ok: true; readonly socket: Socket; readonly address: string }
  | { readonly ok: false; readonly kind: FailureKind | "STOPPED" | "REFUSED"; readonly nativeCode: string | null }
  | { readonly ok: false; readonly kind: "ROUTE"; readonly failure: UpstreamFailure };

/**
 * How a client's connections are made; the direct one and the CONNECT ones are alike to everything above. Within `budgetMs`,
 * and not past the stop. A socket that fails, stops or is late is destroyed before the answer, and every raw socket keeps an
 * error listener for life. Rejects only with faults.
 */
export type Dialer = (target: DialTarget, stop: Stop, budgetMs: number, context: DialContext) => Promise<DialResult>;
