import { type BinaryStore, createS3Store, createStore, deriveDownloadKey } from "@keble-scraper/artifact-store";
import type { Clock, Logger } from "@keble-scraper/service";
import type { SignDownload } from "../context.ts";
import type { ArtifactsSettings } from "../settings.ts";
import { createDownloadServer, type DownloadServer } from "./download-server.ts";

/** The store, and where its links come from. `server` null: the store's own service answers them. */
export type Downloads = {
  readonly store: BinaryStore;
  readonly sign: SignDownload;
  readonly server: DownloadServer | null;
};

/** The store that the settings name with what makes its links. Nothing is opened before the start. */
export function openDownloads(
  settings: Pick<ArtifactsSettings, "artifacts" | "secretKey">,
  parts: { readonly clock: Clock; readonly logger: Logger },
): Downloads {
  const place = settings.artifacts.store;
  if (place.kind === "S3") {
    const store = createS3Store(place);
    return { store, sign: store.signDownload, server: null };
  }
  const store = createStore(place);
  const signingKey = deriveDownloadKey(settings.secretKey);
  const server = createDownloadServer({ baseUrl: place.baseUrl, signingKey, store, ...parts });
  return { store, sign: async (request) => Promise.resolve(server.sign(request)), server };
}
