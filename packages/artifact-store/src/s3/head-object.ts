import { StoreUnavailable } from "../store-unavailable.ts";
import type { S3Context } from "./s3-context.ts";
import { answerOf } from "./s3-fault.ts";

/** The object's size, or null. A bucket that is gone looks the same here: the fence reads the owner's mark, which tells. */
export async function headObject(
  { settings, client }: S3Context,
  name: string,
): Promise<{ readonly sizeBytes: number } | null> {
  const s3 = client();
  const command = new s3.sdk.HeadObjectCommand({ Bucket: settings.bucket, Key: name });
  try {
    const { ContentLength } = await s3.call(async (sdk, options) => sdk.send(command, options));
    if (ContentLength === undefined) throw new StoreUnavailable("BAD_ANSWER");
    return { sizeBytes: ContentLength };
  } catch (error) {
    if (answerOf(error)?.status === 404) return null;
    throw error;
  }
}
