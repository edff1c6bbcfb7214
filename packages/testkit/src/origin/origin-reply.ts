import type { Socket } from "node:net";
import type { OriginRequest } from "./origin-request.ts";

/** What `reply.send` writes. Without `body` nothing follows the head; Content-Length is added unless `headers` frames it. */
export type OriginAnswer = {
  readonly status?: number;
  readonly reason?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
};

/** The origin's side of one request: bytes written by hand. Writing to a closed socket does nothing. */
export type OriginReply = {
  readonly request: OriginRequest;
  readonly socket: Socket;
  /** Resolves once the peer or we closed the connection. */
  readonly closed: Promise<void>;
  isClosed(): boolean;
  /** Writes bytes (text as latin1) and waits until they were taken, so that endless bodies stay small in memory. */
  write(bytes: string | Buffer): Promise<void>;
  /** A well-formed response. */
  send(answer: OriginAnswer): Promise<void>;
  /** Sends FIN. */
  end(bytes?: string | Buffer): void;
  /** Sends RST. */
  reset(): void;
};

/** What an origin does with one request; the connection stays open for the next one unless it was closed. */
export type OriginBehaviour = (reply: OriginReply) => void | Promise<void>;

/** The reply of one request on one socket. */
export function createOriginReply(request: OriginRequest, socket: Socket, closed: Promise<void>): OriginReply {
  const write = async (bytes: string | Buffer): Promise<void> => {
    if (socket.destroyed || socket.writableEnded) return;
    const taken = new Promise<void>((resolve) => {
      socket.write(toBuffer(bytes), () => {
        resolve();
      });
    });
    await Promise.race([taken, closed]);
  };
  return {
    request,
    socket,
    closed,
    isClosed: () => socket.destroyed || socket.writableEnded,
    write,
    send: (answer) => write(formatAnswer(answer)),
    end(bytes) {
      if (!socket.destroyed) socket.end(toBuffer(bytes ?? ""));
    },
    reset() {
      socket.resetAndDestroy();
    },
  };
}

/** The bytes of a well-formed response. */
export function formatAnswer(answer: OriginAnswer): Buffer {
  const { status = 200, reason = "OK", headers = {}, body } = answer;
  const bytes = toBuffer(body ?? "");
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  const lines = [`HTTP/1.1 ${status} ${reason}`];
  for (const [name, value] of Object.entries(headers)) {
    for (const one of typeof value === "string" ? [value] : value) lines.push(`${name}: ${one}`);
  }
  const isFramed = names.includes("content-length") || names.includes("transfer-encoding");
  if (!isFramed && !(names.includes("connection") && body === undefined)) lines.push(`Content-Length: ${bytes.length}`);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), bytes]);
}

function toBuffer(bytes: string | Buffer): Buffer {
  return typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes;
}
