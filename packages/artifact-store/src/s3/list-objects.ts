import { formatBinaryKey, parseBinaryKey } from "../binary-key.ts";
import { type BinaryPage, LIST_PAGE_MAX, type StoredBinary } from "../binary-store.ts";
import { StoreUnavailable } from "../store-unavailable.ts";
import { parseObjectName, type S3Context } from "./s3-context.ts";

/**
 * One page of the objects below the prefix. A cursor is the key that a page ended with, so it holds for ever, on any
 * process. Names that are no keys are passed over, however many of them there are in a row.
 */
export async function listObjects(context: S3Context, cursor: string | null, limit: number): Promise<BinaryPage> {
  if (cursor !== null && parseBinaryKey(cursor) === null) throw new Error("not a listing cursor");
  if (!Number.isInteger(limit) || limit < 1 || limit > LIST_PAGE_MAX) throw new Error("not a page size");
  const root = `${context.settings.prefix}/`;
  for (let after = cursor === null ? null : root + cursor; ;) {
    const page = await listNames(context, { root, after, limit });
    const items = page.objects.flatMap(({ name, ...object }): StoredBinary[] => {
      const key = parseObjectName(context.settings, name);
      return key === null ? [] : [{ key, ...object }];
    });
    if (!page.hasMore) return { items, nextCursor: null };
    const last = items.at(-1);
    if (last !== undefined) return { items, nextCursor: formatBinaryKey(last.key) };
    const next = page.objects.at(-1)?.name;
    // A service that says "more" and does not get on would keep this loop for ever.
    if (next === undefined || (after !== null && next <= after)) throw new StoreUnavailable("BAD_ANSWER");
    after = next;
  }
}

type Listed = { readonly name: string; readonly sizeBytes: number; readonly storedAt: Date };

async function listNames(
  { settings, client }: S3Context,
  which: { readonly root: string; readonly after: string | null; readonly limit: number },
): Promise<{ readonly objects: readonly Listed[]; readonly hasMore: boolean }> {
  const s3 = client();
  const command = new s3.sdk.ListObjectsV2Command({
    Bucket: settings.bucket,
    Prefix: which.root,
    MaxKeys: which.limit,
    ...(which.after === null ? {} : { StartAfter: which.after }),
  });
  const { Contents = [], IsTruncated } = await s3.call(async (sdk, options) => sdk.send(command, options));
  const objects = Contents.map(({ Key, Size, LastModified }) => {
    if (Key === undefined || Size === undefined || LastModified === undefined) throw new StoreUnavailable("BAD_ANSWER");
    return { name: Key, sizeBytes: Size, storedAt: LastModified };
  });
  return { objects, hasMore: IsTruncated === true };
}
