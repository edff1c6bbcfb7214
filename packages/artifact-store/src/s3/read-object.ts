import { Readable } from "node:stream";
import type { ByteRange } from "../binary-store.ts";
import { StoreUnavailable } from "../store-unavailable.ts";
import type { S3Context } from "./s3-context.ts";
import { answerOf, toS3Fault } from "./s3-fault.ts";

/** The object's bytes, or null. Only the service's own "no such key" is null: a bucket that is gone is a fault. */
export async function readObject(
  { settings, client }: S3Context,
  name: string,
  range?: ByteRange,
): Promise<Readable | null> {
  const s3 = client();
  const command = new s3.sdk.GetObjectCommand({
    Bucket: settings.bucket,
    Key: name,
    ...(range === undefined ? {} : { Range: `bytes=${String(range.start)}-${String(range.end)}` }),
  });
  try {
    const { Body, $metadata } = await s3.call(async (sdk, options) => sdk.send(command, options));
    if (!(Body instanceof Readable)) throw new StoreUnavailable("BAD_ANSWER");
    if (range !== undefined && $metadata.httpStatusCode !== 206) {
      Body.destroy();
      throw new StoreUnavailable("RANGE_IGNORED");
    }
    return toFaultingStream(Body);
  } catch (error) {
    if (answerOf(error)?.code === "NoSuchKey") return null;
    throw error;
  }
}

/**
 * The same bytes, whose failure on the way is `StoreUnavailable`. Destroying it closes the connection, also before the
 * first byte was read.
 */
function toFaultingStream(source: Readable): Readable {
  const stream = new Readable({
    read: () => source.resume(),
    destroy(error, done) {
      source.destroy();
      done(error);
    },
  });
  source.pause();
  source.on("data", (chunk: Uint8Array) => {
    if (!stream.push(chunk)) source.pause();
  });
  source.once("end", () => stream.push(null));
  source.on("error", (error) => stream.destroy(toS3Fault(error) as Error));
  source.once("close", () => {
    if (!source.readableEnded && !stream.destroyed) stream.destroy(new StoreUnavailable("ECONNRESET"));
  });
  return stream;
}
