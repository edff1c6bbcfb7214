import type { Tx } from "../../database.ts";

/** What was shown for a reset. Compared as a whole when a run that broke off is run again. Holds no secret. */
export type ResetEvidence = {
  /** RFC 3339: from then on nothing wrote. */
  readonly writerStop: string;
  /** `<name>@<system identifier>`. */
  readonly database: string;
  /** The exact prefix of the deployment's keys. */
  readonly redis: string;
  readonly artifactOwner: string;
  /** SHA-256 of the snapshot's file, in hex. */
  readonly snapshot: string;
  /** SHA-256 of the inventory, in hex. */
  readonly inventory: string;
  /** The audit row of the dry run. */
  readonly audit: string;
};

/** What has gone so far, over all runs of a campaign. */
export type ResetProgress = { readonly objects: number; readonly rows: number; readonly keys: number };

/** A reset that was begun. */
export type ResetRun = {
  readonly campaign: string;
  readonly state: "RUNNING" | "DONE";
  readonly evidence: ResetEvidence;
  readonly gone: ResetProgress;
};

/** The run of a campaign, or null. */
export async function findResetRun(sql: Tx, campaign: string): Promise<ResetRun | null> {
  const [row] = await sql<{ state: ResetRun["state"]; evidence: { shown: ResetEvidence; gone: ResetProgress } }[]>`
    select state, evidence from reset_runs where campaign = ${campaign}`;
  return row === undefined
    ? null
    : { campaign, state: row.state, evidence: row.evidence.shown, gone: row.evidence.gone };
}

/** The campaign that is begun and not done, or null. */
export async function findRunningCampaign(sql: Tx): Promise<string | null> {
  const [row] = await sql<{ campaign: string }[]>`
    select campaign from reset_runs where state = 'RUNNING' order by started_at limit 1`;
  return row?.campaign ?? null;
}

/** Adds to what has gone, in the transaction of what goes. */
export async function addGone(tx: Tx, campaign: string, what: keyof ResetProgress, count: number): Promise<void> {
  await tx`
    update reset_runs
    set evidence = jsonb_set(evidence, array['gone', ${what}]::text[],
                             to_jsonb((evidence #>> array['gone', ${what}]::text[])::bigint + ${count}::bigint))
    where campaign = ${campaign} and state = 'RUNNING'`;
}
