import { countRunningBefore, countWaitingJobs, isDatabaseOutage, listHostHolds, type Sql } from "@keble-scraper/db";
import { raiseAdmissionClock, takeAdmission, takePaces } from "@keble-scraper/db/commands/fetching";
import type { AdmissionSql } from "./admission.ts";
import { type AdmissionKey, EARLY_MS } from "./admission-key.ts";

/** What admission asks of Postgres, by its commands and queries. */
export function createAdmissionSql(sql: Sql): AdmissionSql {
  return {
    async takeAdmission({ key, intervalMs, patienceMs, bookedAtMs, voidMs, seenAheadMs, slackMs }) {
      if (seenAheadMs > 0) await raiseAdmissionClock(sql, { key, aheadMs: seenAheadMs, slackMs });
      // A booking is kept until `voidMs` after it, however little the caller would wait for a new one.
      const waitMs = bookedAtMs === null ? patienceMs : voidMs;
      return takeAdmission(sql, { key, intervalMs, waitMs, bookedAtMs });
    },
    async takePaces(limits) {
      const paces = limits.map(({ key, paceMs }) => ({ key: `pace:${key}`, intervalMs: paceMs }));
      const refusal = await takePaces(sql, paces, EARLY_MS);
      const limit = limits.find(({ key }) => refusal?.key === `pace:${key}`);
      return refusal === null || limit === undefined ? null : { key: limit.key, inMs: refusal.inMs };
    },
    countRunningBefore: (key, { token }) => countRunningBefore(sql, { token, ...partsOf(key) }),
    countWaitingJobs: (key) => countWaitingJobs(sql, partsOf(key)),
    async listHostHolds(hostKeys) {
      const holds = await listHostHolds(sql, hostKeys);
      return new Map(holds.map(({ hostKey, remainingMs }) => [hostKey, remainingMs]));
    },
    isOutage: isDatabaseOutage,
  };
}

function partsOf(key: AdmissionKey): { readonly by: "HOST" | "ROUTE"; readonly key: string } {
  const by = key.startsWith("host:") ? "HOST" : "ROUTE";
  return { by, key: key.slice(key.indexOf(":") + 1) };
}
