import { Agent } from "node:http";
import { S3Client } from "@aws-sdk/client-s3";
import { lookUpLocally, type S3Server } from "@keble-scraper/testkit";

/** A request as the SDK is about to send it, signed already. */
export type SignedHttpRequest = {
  method: string;
  path: string;
  query: Record<string, string | string[] | null>;
  headers: Record<string, string>;
  body: unknown;
};

/** How a client differs from the ordinary one. */
export type ClientChanges = {
  readonly addressing?: "PATH" | "VIRTUAL_HOST";
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  readonly region?: string;
  /** The SDK's own default: bodies of unknown hash go in aws-chunked coding. */
  readonly checksums?: "WHEN_REQUIRED" | "WHEN_SUPPORTED";
  /** Changes every request after it was signed. */
  readonly tamper?: (request: SignedHttpRequest) => void;
};

/** The SDK's client of a server; it tries once. Disposing it closes its connections. */
export function clientOf(server: S3Server, changes: ClientChanges = {}): S3Client & Disposable {
  const inPath = (changes.addressing ?? "PATH") === "PATH";
  const client = new S3Client({
    endpoint: inPath ? server.url : server.virtualHostUrl,
    forcePathStyle: inPath,
    region: changes.region ?? server.region,
    credentials: {
      accessKeyId: changes.accessKeyId ?? server.accessKeyId,
      secretAccessKey: changes.secretAccessKey ?? server.secretAccessKey,
    },
    requestChecksumCalculation: changes.checksums ?? "WHEN_REQUIRED",
    responseChecksumValidation: changes.checksums ?? "WHEN_REQUIRED",
    maxAttempts: 1,
    requestHandler: { httpAgent: new Agent({ lookup: lookUpLocally, keepAlive: true }) },
  });
  const { tamper } = changes;
  if (tamper !== undefined) {
    const { requestHandler } = client.config;
    const handle = requestHandler.handle.bind(requestHandler);
    requestHandler.handle = (request, options) => {
      tamper(request as SignedHttpRequest);
      return handle(request, options);
    };
  }
  return Object.assign(client, { [Symbol.dispose]: () => client.destroy() });
}
