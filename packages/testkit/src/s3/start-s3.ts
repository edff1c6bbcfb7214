import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createObjectTable } from "./object-table.ts";
import { operationOf, performOperation } from "./perform-operation.ts";
import { createPieceKeeper } from "./piece-keeper.ts";
import { refusalDocument, type S3Answer, type S3Dialect } from "./s3-answer.ts";
import type { S3Context } from "./s3-context.ts";
import { refuse, type S3Result } from "./s3-refusal.ts";
import { parseS3Request } from "./s3-request.ts";
import { sendAnswer } from "./send-answer.ts";
import { createUploadTable } from "./upload-table.ts";
import { verifySignature } from "./verify-signature.ts";

/** What a server is like. Everything has a default. */
export type S3Options = {
  /** "keble-artifacts". */
  readonly bucket?: string;
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  /** The region that signatures must name: "us-east-1". */
  readonly region?: string;
  /** S3. */
  readonly dialect?: S3Dialect;
  /** Absent: any free one. */
  readonly port?: number;
  /** Keeps bodies in files of this existing directory instead of in memory. Removing them is the caller's. */
  readonly directory?: string;
  /** The least size of a part that is not the last: 5 MiB. */
  readonly partBytesMin?: number;
  /** The server's clock, in milliseconds since the epoch. Expiry, skew and times of storing go by it. */
  readonly now?: () => number;
};

/** One object as a test sees it. */
export type S3ObjectView = {
  readonly sizeBytes: number;
  /** Hex, of the bytes as they came in. */
  readonly sha256: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly contentType: string | undefined;
  readonly storedAt: Date;
};

/** A server that speaks S3's protocol to one bucket, one key and one secret. Disposing it cuts what is open. */
export type S3Server = AsyncDisposable & {
  /** `http://127.0.0.1:port`, for clients that put the bucket into the path. */
  readonly url: string;
  /**
   * `http://localhost:port`, for clients that put the bucket into the host: they connect to `<bucket>.localhost`, which
   * no resolver here knows. Give the client an agent that looks names up with `lookUpLocally`.
   */
  readonly virtualHostUrl: string;
  readonly port: number;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Every object, by key, in key order. */
  objects(): ReadonlyMap<string, S3ObjectView>;
};

/** Starts a server on 127.0.0.1 with an empty bucket. */
export async function startS3(options: S3Options = {}): Promise<S3Server> {
  const bucket = options.bucket ?? "keble-artifacts";
  const key = {
    accessKeyId: options.accessKeyId ?? "KEBLETESTKEYID",
    secretAccessKey: options.secretAccessKey ?? "keble/test+secret/of/the+stand-in",
    region: options.region ?? "us-east-1",
  };
  const context: S3Context = {
    bucket,
    dialect: options.dialect ?? "S3",
    objects: createObjectTable(),
    uploads: createUploadTable(),
    keeper: createPieceKeeper(options.directory),
    partBytesMin: options.partBytesMin ?? 5 * 1024 * 1024,
    nowMs: options.now ?? Date.now,
  };

  let count = 0;
  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    count += 1;
    const requestId = count.toString(16).toUpperCase().padStart(16, "0");
    const result = await decide(incoming, response);
    const own = context.dialect === "OSS" ? { "x-oss-request-id": requestId } : { "x-amz-request-id": requestId };
    const answer: S3Answer = result.ok
      ? result.value
      : {
          status: result.refusal.status,
          headers: { "content-type": "application/xml" },
          body: {
            kind: "TEXT",
            text: refusalDocument(result.refusal, context.dialect, requestId, incoming.url ?? ""),
          },
        };
    await sendAnswer({ ...answer, headers: { ...answer.headers, ...own } }, response);
  }

  async function decide(incoming: IncomingMessage, response: ServerResponse): Promise<S3Result<S3Answer>> {
    const request = parseS3Request(incoming, bucket);
    if (request === null) return refuse("InvalidURI");
    const verified = verifySignature(request, key, context.nowMs());
    if (!verified.ok) return verified;
    return performOperation(operationOf(request), context, {
      request,
      payloadHash: verified.value.payloadHash,
      body() {
        if (request.headers.get("expect") === "100-continue") response.writeContinue();
        return incoming as AsyncIterable<Buffer>;
      },
    });
  }

  const listener = (incoming: IncomingMessage, response: ServerResponse): void => {
    handle(incoming, response).catch(() => response.destroy());
  };
  const server = createServer(listener);
  server.on("checkContinue", listener);
  // A slow sender is a test's business.
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port: options.port ?? 0, host: "127.0.0.1" }, resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    virtualHostUrl: `http://localhost:${port}`,
    port,
    bucket,
    ...key,
    objects: () =>
      new Map(
        context.objects
          .all()
          .map(({ key: name, sizeBytes, sha256, metadata, headers, storedAtMs }) => [
            name,
            { sizeBytes, sha256, metadata, contentType: headers["content-type"], storedAt: new Date(storedAtMs) },
          ]),
      ),
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
