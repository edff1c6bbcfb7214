import { expect, test } from "vitest";
import type { StoreIdentity } from "./binary-store.ts";
import { createFence, FenceRefused } from "./fence.ts";
import { FENCE_REASONS, type FenceReason, type StoredNamespace } from "./namespace-check.ts";
import { formatOwnerMark } from "./owner-mark.ts";

const CLAIM = "0b2f6c1e-6f0e-4a0b-9b8e-0d7c5a4f3e21";
const OTHER_CLAIM = "1c2f6c1e-6f0e-4a0b-9b8e-0d7c5a4f3e21";
const S3: StoreIdentity = { kind: "S3", prefix: "artifacts", endpoint: "https://s3.example.com", bucket: "kept" };
const LOCAL: StoreIdentity = { kind: "LOCAL", prefix: "artifacts", directory: "/data/store" };
const S3_ROW: StoredNamespace = {
  kind: "S3",
  prefix: "artifacts",
  endpoint: "https://s3.example.com",
  bucket: "kept",
  directory: null,
  owner: "production/main",
  claim: CLAIM,
  claimedAt: new Date(0),
};
const LOCAL_ROW: StoredNamespace = { ...S3_ROW, kind: "LOCAL", endpoint: null, bucket: null, directory: "/data/store" };
const MARK = formatOwnerMark({ owner: "production/main", claim: CLAIM });

type Case = {
  readonly identity?: StoreIdentity;
  readonly owner?: string;
  readonly row?: StoredNamespace | null;
  readonly hasRows?: boolean;
  readonly mark?: string | null;
};

function fenceOf({ identity = S3, owner = "production/main", row = S3_ROW, hasRows = true, mark = MARK }: Case) {
  const asked: string[] = [];
  const fence = createFence({
    owner,
    store: {
      identity: () => identity,
      async readOwner() {
        asked.push("mark");
        return Promise.resolve(mark);
      },
    },
    async findNamespace() {
      asked.push("row");
      return Promise.resolve(row);
    },
    async hasRows() {
      asked.push("rows");
      return Promise.resolve(hasRows);
    },
  });
  return { asked, start: async () => fence.start(new AbortController().signal) };
}

test("A4 a process starts on the store that the row, the settings and the store's mark all name", async () => {
  for (const [identity, row] of [
    [S3, S3_ROW],
    [LOCAL, LOCAL_ROW],
  ] as const) {
    const { asked, start } = fenceOf({ identity, row });
    await start();
    expect(asked).toEqual(["row", "mark"]);
  }
});

const REFUSED: readonly (readonly [FenceReason, Case, string])[] = [
  ["NOT_CLAIMED", { row: null, hasRows: false }, "run keble-scraper migrate"],
  ["ROWS_WITHOUT_NAMESPACE", { row: null, hasRows: true }, "holds artifacts"],
  ["NAMESPACE_INCOMPLETE", { row: { ...S3_ROW, claimedAt: null } }, "run keble-scraper migrate"],
  ["NAMESPACE_INCOMPLETE", { row: { ...S3_ROW, endpoint: null } }, "no endpoint"],
  ["NAMESPACE_INCOMPLETE", { row: { ...S3_ROW, bucket: null } }, "no bucket"],
  ["NAMESPACE_INCOMPLETE", { identity: LOCAL, row: { ...LOCAL_ROW, directory: null } }, "no directory"],
  ["OTHER_KIND", { identity: LOCAL }, '"LOCAL", but the database\'s artifacts are in the kind "S3"'],
  ["OTHER_KIND", { row: LOCAL_ROW }, '"S3"'],
  ["OTHER_PREFIX", { row: { ...S3_ROW, prefix: "artifacts/x" } }, '"artifacts/x"'],
  ["OTHER_ENDPOINT", { row: { ...S3_ROW, endpoint: "http://s3.example.com" } }, '"http://s3.example.com"'],
  ["OTHER_BUCKET", { row: { ...S3_ROW, bucket: "kept2" } }, '"kept2"'],
  ["OTHER_DIRECTORY", { identity: LOCAL, row: { ...LOCAL_ROW, directory: "/data/other" } }, '"/data/other"'],
  ["OTHER_OWNER", { owner: "staging/main" }, "SCRAPER_ARTIFACT_NAMESPACE_OWNER"],
  ["MARK_MISSING", { mark: null }, "no owner's mark"],
  ["MARK_UNREADABLE", { mark: "" }, "not written by this product"],
  ["MARK_UNREADABLE", { mark: `${MARK}\n` }, "not written by this product"],
  ["MARK_OF_ANOTHER_OWNER", { mark: formatOwnerMark({ owner: "staging/x", claim: CLAIM }) }, '"staging/x"'],
  [
    "MARK_OF_ANOTHER_CLAIM",
    { mark: formatOwnerMark({ owner: "production/main", claim: OTHER_CLAIM }) },
    "another database",
  ],
];

test.each(REFUSED)("A4 %s refuses to start and says why: %j", async (reason, facts, says) => {
  const { asked, start } = fenceOf(facts);
  const error: unknown = await start().catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(FenceRefused);
  expect((error as FenceRefused).reason).toBe(reason);
  expect((error as FenceRefused).message).toContain(says);
  // A store that is not this database's is not asked for anything.
  expect(asked.includes("mark")).toBe(reason.startsWith("MARK"));
});

test("A4 every reason has its case", () => {
  expect(new Set(REFUSED.map(([reason]) => reason))).toEqual(new Set(FENCE_REASONS));
});
