import { claimStore, createStore } from "@keble-scraper/artifact-store";
import { createDatabase } from "@keble-scraper/db";
import { claimNamespace, completeNamespace } from "@keble-scraper/db/commands/artifacts";
import type { Settings } from "@keble-scraper/service";

const BY = { actor: "system:test", requestId: null };
const POOLS = { applicationName: "test", commandConnections: 1, readConnections: 1, statementTimeoutMs: 20_000 };

/** Claims the settings' store for a database, as `migrate` does for a deployment: without it no process that opens the store starts. */
export async function claimTestStore(
  { artifacts }: Pick<Settings, "artifacts">,
  { migrationUrl }: { readonly migrationUrl: string },
): Promise<void> {
  const { namespaceOwner: owner } = artifacts;
  const store = createStore(artifacts.store);
  const { commands, stop } = createDatabase({ url: migrationUrl, ...POOLS });
  try {
    await store.start(new AbortController().signal);
    await claimStore({
      store,
      owner,
      async begin(place) {
        const claim = await claimNamespace(commands, { place, owner, rows: "REFUSE" }, BY);
        return claim.state === "UNKNOWN_STORE" ? null : claim.row;
      },
      complete: (claim) => completeNamespace(commands, claim, BY),
    });
  } finally {
    await store.stop(performance.now());
    await stop(performance.now() + 1_000);
  }
}
