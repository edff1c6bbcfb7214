import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { OWNER_BYTES_MAX, OWNER_NAME } from "../owner-mark.ts";
import { StoreUnavailable } from "../store-unavailable.ts";
import { readObject } from "./read-object.ts";
import { forbidOverwrite, MET_ANOTHER_WRITE, type S3Context, THERE_ALREADY } from "./s3-context.ts";
import { answerOf } from "./s3-fault.ts";

/** How often a put of the mark may meet another's. */
const TRIES = 5;

/** What the owner's mark below the prefix says, cut after 4,096 bytes; null: there is none. */
export async function readOwnerObject(context: S3Context): Promise<string | null> {
  const stream = await readObject(context, ownerName(context));
  if (stream === null) return null;
  const chunks: Uint8Array[] = [];
  let left = OWNER_BYTES_MAX;
  // Leaving the loop early destroys the stream.
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    chunks.push(chunk.subarray(0, left));
    left -= chunk.byteLength;
    if (left <= 0) break;
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Puts the mark unless there is one. A service without conditional writes would replace one: the reads after it may tell. */
export async function putOwnerObject(context: S3Context, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  const body = {
    sizeBytes: bytes.byteLength,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    open: () => Readable.from([bytes], { objectMode: false }),
  };
  for (let tries = 1; ; tries += 1) {
    const s3 = context.client();
    const command = new s3.sdk.PutObjectCommand({
      Bucket: context.settings.bucket,
      Key: ownerName(context),
      ContentType: "application/json",
    });
    forbidOverwrite(context.settings, command);
    try {
      await s3.callWith(command, body, async (sdk, ready, options) => sdk.send(ready, options));
      return;
    } catch (error) {
      const code = answerOf(error)?.code ?? "";
      if (THERE_ALREADY.has(code)) return;
      if (code !== MET_ANOTHER_WRITE) throw error;
      if (tries === TRIES) throw new StoreUnavailable(code);
    }
  }
}

function ownerName({ settings }: S3Context): string {
  return `${settings.prefix}/${OWNER_NAME}`;
}
