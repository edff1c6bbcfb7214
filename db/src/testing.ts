import { claimStore, createStore } from "@keble-scraper/artifact-store";
import { claimNamespace } from "./commands/artifacts/claim-namespace.ts";
import { completeNamespace } from "./commands/artifacts/complete-namespace.ts";
import { createDatabase } from "./database.ts";

const BY = { actor: "system:test", requestId: null };
const POOLS = { applicationName: "test", commandConnections: 1, readConnections: 1, statementTimeoutMs: 20_000 };

/** A store as the settings name it, and whose it is to be. */
type TestStore = { readonly store: Parameters<typeof createStore>[0]; readonly namespaceOwner: string };

/**
 * For tests only, and so not in the main entry: claims the settings' store for a database, as `migrate` does for a deployment.
 * Without it no process that opens the store starts.
 */
export async function claimTestStore(
  { artifacts }: { readonly artifacts: TestStore },
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
