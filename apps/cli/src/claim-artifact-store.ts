import { type BinaryStore, claimStore, createStore } from "@keble-scraper/artifact-store";
import { type Adopted, claimNamespace, completeNamespace } from "@keble-scraper/db/commands/artifacts";
import { findNamespace, hasStoredRows, listNewestBlobs, type Namespace, type Sql } from "@keble-scraper/db";
import type { Settings } from "@keble-scraper/service";
import type { CliContext } from "./cli-context.ts";
import { CliError } from "./cli-error.ts";
import { toStoreError } from "./to-store-error.ts";
import { BY_CLI, withDatabase } from "./with-database.ts";

/** How many of the newest objects a store is asked for before it is adopted. */
const SAMPLE = 20;

/**
 * Claims the settings' store for their database, by the owner of the schema, or finds that it is claimed: then nothing is
 * changed. Prints what it did. STORE_REFUSED names what differs; SERVER_MISSING when the store can't be asked: the next run goes
 * on where this one stopped. `rows` says what to do with artifacts whose store the database does not name.
 */
export async function claimArtifactStore(
  context: Pick<CliContext, "print" | "stop">,
  settings: Pick<Settings, "artifacts" | "database" | "retention">,
  rows: "REFUSE" | "ADOPT",
): Promise<void> {
  const { namespaceOwner: owner, store: place } = settings.artifacts;
  const { auditDays } = settings.retention;
  const store = createStore(place);
  try {
    await store.start(context.stop);
    await withDatabase(settings.database.migrationUrl, async ({ commands: sql }) => {
      const shownPlace = (row: Namespace) => `${row.directory ?? `${row.endpoint} ${row.bucket}`} ${row.prefix}`;
      if (rows === "ADOPT") await checkSample(sql, store);
      const { outcome, row } = await claimStore({
        store,
        owner,
        async begin(identity) {
          const claim = await claimNamespace(sql, { place: identity, owner, rows }, BY_CLI, auditDays);
          if (claim.state === "UNKNOWN_STORE") return null;
          if (claim.state === "HELD") return claim.row;
          if (claim.replaced !== null) {
            context.print(`Gave up the claim that was begun for ${shownPlace(claim.replaced)}, which held nothing`);
          }
          if (claim.adopted !== null) context.print(describeAdoption(claim.adopted));
          return claim.row;
        },
        complete: (claim) => completeNamespace(sql, claim, BY_CLI, auditDays),
      });
      if (outcome === "CLAIMED") context.print(`Claimed the artifact store for ${row.owner}: ${shownPlace(row)}`);
    });
  } catch (error) {
    throw toStoreError(error);
  } finally {
    await store.stop(performance.now());
  }
}

/** A store that holds none of the newest objects is not the one to adopt: refused before anything is written. */
async function checkSample(sql: Sql, store: BinaryStore): Promise<void> {
  if ((await findNamespace(sql)) !== null || !(await hasStoredRows(sql))) return;
  const sample = await listNewestBlobs(sql, SAMPLE);
  const found = await Promise.all(sample.map(async (key) => (await store.head(key)) !== null));
  const present = found.filter(Boolean).length;
  if (sample.length > 0 && present === 0) {
    throw new CliError(
      "STORE_REFUSED",
      `This store holds none of the ${sample.length} newest objects of the database: it is not the store of its artifacts. Nothing was changed.`,
    );
  }
}

function describeAdoption({ artifacts, blobs, bytes }: Adopted): string {
  return `Adopted ${artifacts} artifacts: ${blobs} objects of ${bytes} bytes that the database says are in this store`;
}
