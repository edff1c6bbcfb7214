import type { SpooledBody } from "../spooled-body.ts";
import { StoreUnavailable } from "../store-unavailable.ts";
import { headObject } from "./head-object.ts";
import { objectHeaders } from "./object-headers.ts";
import { putInParts } from "./put-parts.ts";
import type { RequestBody } from "./s3-client.ts";
import { forbidOverwrite, MET_ANOTHER_WRITE, type S3Context, THERE_ALREADY } from "./s3-context.ts";
import { answerOf } from "./s3-fault.ts";
import { openVerified } from "./verified-stream.ts";

/** How often a put may be refused for what is there, or for another's write that it met: one of both wins each time. */
const TRIES = 5;

/**
 * Stores the body under `name`. What is there already with the right size is left as it is; with another size it is
 * replaced. Bodies up to the single-put limit go in one request, whose head says the hash of what follows.
 */
export async function putObject(context: S3Context, body: SpooledBody, name: string): Promise<void> {
  const isLong = body.sizeBytes > context.tuning.singlePutBytesMax;
  let there = isLong ? await headObject(context, name) : null;
  for (let tries = 1; ; tries += 1) {
    // Its name says what its bytes must be, so an object of another size is damaged. Nobody else writes this generation.
    if (there?.sizeBytes === body.sizeBytes) return;
    const put = isLong ? putInParts : putWhole;
    const refusal = await refusalOf(async () => put(context, body, { name, mayReplace: there !== null }));
    if (refusal === null) return;
    there = await headObject(context, name);
    if (tries === TRIES && there?.sizeBytes !== body.sizeBytes) throw new StoreUnavailable(refusal);
  }
}

/** The code of a refusal that says something about what is there; null: stored. */
async function refusalOf(put: () => Promise<void>): Promise<string | null> {
  try {
    await put();
    return null;
  } catch (error) {
    const code = answerOf(error)?.code;
    if (code !== undefined && (THERE_ALREADY.has(code) || code === MET_ANOTHER_WRITE)) return code;
    throw error;
  }
}

async function putWhole(
  { settings, client }: S3Context,
  body: SpooledBody,
  { name, mayReplace }: { readonly name: string; readonly mayReplace: boolean },
): Promise<void> {
  const s3 = client();
  const command = new s3.sdk.PutObjectCommand({ Bucket: settings.bucket, Key: name, ...objectHeaders(body.sha256) });
  if (!mayReplace) forbidOverwrite(settings, command);
  await s3.callWith(command, wholeOf(body), async (sdk, ready, options) => sdk.send(ready, options));
}

function wholeOf(body: SpooledBody): RequestBody {
  const { sizeBytes, sha256 } = body;
  const range = { start: 0, end: sizeBytes - 1 };
  return { sizeBytes, sha256, open: () => openVerified(body, { range, sha256 }) };
}
