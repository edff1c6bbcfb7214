import type { Spool, SpooledBody } from "@keble-scraper/artifact-store";
import type { StoredBytes } from "@keble-scraper/db/commands/fetching";
import type { RefusedBody } from "@keble-scraper/egress";
import type { Logger } from "@keble-scraper/service";
import type { StoreBody } from "./store-body.ts";

/** Stores a refused body. Null when it could not be kept: what an attempt failed with matters more than its evidence. */
export type KeepEvidence = (
  refused: RefusedBody,
) => Promise<{ readonly bytes: StoredBytes; readonly body: SpooledBody } | null>;

/** Evidence goes the way of every body: through the spool, durable before the row that names it. */
export function createKeepEvidence(options: {
  readonly spool: Spool;
  readonly storeBody: StoreBody;
  readonly logger: Logger;
}): KeepEvidence {
  return async (refused) => {
    const spooling = options.spool.open();
    let body: SpooledBody | null = null;
    try {
      await spooling.write(refused.bytes);
      body = await spooling.finish();
      return { bytes: await options.storeBody.store(body, refused), body };
    } catch (error) {
      options.logger.warn({ err: error }, "evidence.lost");
      await body?.discard();
      return null;
    } finally {
      await spooling.discard();
    }
  };
}
