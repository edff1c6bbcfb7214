import type { BinaryStore, Spool } from "@keble-scraper/artifact-store";
import { isDatabaseOutage, listAvailableBlobs, type Sql } from "@keble-scraper/db";
import { allowedTargetsOf } from "@keble-scraper/egress";
import type { Clock, Logger } from "@keble-scraper/service";
import type { Admission } from "../admission/admission.ts";
import type { FetchingSettings } from "../settings.ts";
import type { JobCache } from "./cache/job-cache.ts";
import { createBlobFinder } from "./blob-finder.ts";
import { createIdSource } from "./create-id-source.ts";
import { decideNext } from "./decide-next.ts";
import { createKeepEvidence } from "./keep-evidence.ts";
import { createLessons } from "./lessons.ts";
import { createReserveMoney } from "./reserve-money.ts";
import type { AttemptParts } from "./run-attempt.ts";
import { createSessions } from "./sessions.ts";
import { createStoreBody } from "./store-body.ts";
import { createUntilStored } from "./until-stored.ts";
import type { Ways } from "./way.ts";

/** What the attempts of one worker share: what they learn, what they pay by and where their bytes go. Opens nothing. */
export function createAttemptParts(
  settings: Pick<FetchingSettings, "fetching" | "callers" | "admission" | "retry">,
  worker: {
    readonly sql: Sql;
    readonly ways: Ways;
    readonly admission: Admission;
    readonly spool: Spool;
    readonly store: BinaryStore;
    readonly cache: JobCache;
    readonly clock: Clock;
    readonly random: () => number;
    readonly logger: Logger;
  },
): AttemptParts {
  const { sql, ways, admission, spool, store, cache, clock, random, logger } = worker;
  const { monotonicMs, wallMs } = clock;
  const createId = createIdSource();
  const blobs = createBlobFinder((sha256s) => listAvailableBlobs(sql, sha256s));
  const storeBody = createStoreBody({
    store,
    findBlob: (sha256) => blobs.find(sha256),
    isOutage: isDatabaseOutage,
    createId,
  });
  const retry = { ...settings.retry, random, wallMs };
  return {
    ways,
    spool,
    storeBody,
    cache,
    untilStored: createUntilStored({ random, onAway: (error) => logger.warn({ err: error }, "attempt.store_away") }),
    keepEvidence: createKeepEvidence({ spool, storeBody, logger }),
    allowedTargets: allowedTargetsOf(settings.fetching.allowedTargets),
    reserveMoney: createReserveMoney(sql, settings.callers),
    lessons: createLessons({
      holdMsMax: settings.admission.hostHoldMsMax,
      onHold: (hostKey, ms) => admission.learnHold(hostKey, ms),
      monotonicMs,
      wallMs,
    }),
    sessions: createSessions(admission.sticky),
    admissionFor: (job, way) => admission.forJob(job, way.attemptMs),
    decideNext: (failure, attemptsUsed) => decideNext(failure, attemptsUsed, retry),
    monotonicMs,
    random,
    createId,
  };
}
