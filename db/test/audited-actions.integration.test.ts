import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { putPin } from "../src/commands/artifacts/index.ts";
import { deleteEndpoint, patchEndpoint, registerEndpoint } from "../src/commands/callbacks/index.ts";
import { quarantineRoute, releaseRoute } from "../src/commands/fetching/index.ts";
import { cancelJob, deleteJob } from "../src/commands/intake/index.ts";
import { bootstrapOperatorKey, createApiKey, revokeApiKey } from "../src/commands/keys/index.ts";
import { storeArtifact } from "./artifact-fixtures.ts";
import { BY, newEndpoint, registerOne } from "./callback-fixtures.ts";
import { OPTIONS, openTestDatabase, submitOne } from "./job-fixtures.ts";

/** Overflows the audit row's clock, so that it can't be written. */
const NO_AUDIT = 2_000_000_000;
/** What the actions change. While the flag is up, a change of any of these fails when its transaction commits. */
const TABLES = ["api_keys", "callback_endpoints", "route_quarantines", "artifact_pins", "jobs"];

let database: Awaited<ReturnType<typeof openTestDatabase>>;
let owner: postgres.Sql;

beforeAll(async () => {
  database = await openTestDatabase();
  owner = postgres(database.migrationUrl, { max: 1, onnotice: () => undefined });
  await owner.unsafe(`
    create table refuses_changes (flag boolean);
    grant select on refuses_changes to public;
    create function refuse_changes() returns trigger language plpgsql as $$
    begin
      if exists (select 1 from refuses_changes) then raise exception 'refused at the commit'; end if;
      return null;
    end $$;
    ${TABLES.map(
      (table) => `create constraint trigger refuse_changes after insert or update or delete on ${table}
                  deferrable initially deferred for each row execute function refuse_changes();`,
    ).join("\n")}`);
});
afterAll(async () => {
  await owner.end({ timeout: 1 });
  await database[Symbol.asyncDispose]();
});

const KEY = { name: "shop", kind: "SERVICE", callerId: "acme", scopes: ["jobs:read"], expiresAt: null } as const;

type Act = (retentionDays?: number) => Promise<unknown>;

/** Each makes what it acts on, and gives the act, which may be tried again after it failed. */
const ACTIONS: readonly (readonly [action: string, prepare: () => Promise<Act>])[] = [
  [
    "api-key.created",
    () => Promise.resolve((days) => createApiKey(database.commands, { ...KEY, scopes: ["jobs:read"] }, BY, days)),
  ],
  ["api-key.created", () => Promise.resolve((days) => bootstrapOperatorKey(database.commands, "first", BY, days))],
  [
    "api-key.revoked",
    async () => {
      const { id } = await createApiKey(database.commands, { ...KEY, scopes: ["jobs:read"] }, BY);
      return (days) => revokeApiKey(database.commands, id, BY, days);
    },
  ],
  [
    "callback-endpoint.registered",
    () => {
      const endpoint = newEndpoint();
      return Promise.resolve((days) => registerEndpoint(database.commands, endpoint, BY, days));
    },
  ],
  ["callback-endpoint.changed", () => patching({ url: "https://hooks.example.com/other" })],
  ["callback-endpoint.disabled", () => patching({ disabledReason: "OPERATOR" })],
  [
    "callback-endpoint.enabled",
    async () => {
      const { id } = await registerOne(database);
      await patchEndpoint(database.commands, { id, callerId: null }, { disabledReason: "OPERATOR" }, BY);
      return patchOf(id, { disabledReason: null });
    },
  ],
  [
    "callback-endpoint.deleted",
    async () => {
      const { id } = await registerOne(database);
      return (days) => deleteEndpoint(database.commands, { id, callerId: null }, BY, toOptions(days));
    },
  ],
  ["route.quarantined", () => Promise.resolve((days) => quarantine(days))],
  [
    "route.released",
    async () => {
      await quarantine();
      return (days) => releaseRoute(database.commands, { route: "UNLOCKER", by: BY, retentionDays: days });
    },
  ],
  ["artifact.pinned", () => pinning(null)],
  ["artifact.pin-released", () => pinning(new Date(0))],
  [
    "job.deleted",
    async () => {
      const id = await submitOne(database);
      await cancelJob(database.commands, { id, callerId: null }, OPTIONS);
      return (days) => deleteJob(database.commands, { id, callerId: null }, BY, days);
    },
  ],
];

function quarantine(retentionDays?: number): Promise<unknown> {
  const row = { route: "UNLOCKER", reason: "OPERATOR", nativeCode: null, note: null, forMs: null, by: BY };
  return quarantineRoute(database.commands, { ...row, retentionDays });
}

function patchOf(id: string, patch: Parameters<typeof patchEndpoint>[2]): Act {
  return (days) =>
    patchEndpoint(
      database.commands,
      { id, callerId: null },
      patch,
      BY,
      days === undefined ? {} : { retentionDays: days },
    );
}

async function patching(patch: Parameters<typeof patchEndpoint>[2]): Promise<Act> {
  const { id } = await registerOne(database);
  return patchOf(id, patch);
}

async function pinning(expiresAt: Date | null): Promise<Act> {
  const { id: artifactId } = await storeArtifact(database);
  const pin = { artifactId, callerId: null, owner: `owner-${uuidv7()}`, retentionRevision: 1, expiresAt };
  return (days) => putPin(database.commands, pin, BY, days);
}

function toOptions(retentionDays: number | undefined) {
  return { open: "REFUSE_OPEN" as const, ...(retentionDays === undefined ? {} : { retentionDays }) };
}

/** Every row of what may change, as text, and the actions of the audit. */
async function look(): Promise<{ rows: string; audit: string[] }> {
  const rows: unknown[] = [];
  for (const table of TABLES)
    rows.push(await owner.unsafe(`select to_jsonb(t) as row from ${table} t order by t::text`));
  const audit = await owner<{ action: string }[]>`select action from audit_events order by occurred_at, id`;
  return { rows: JSON.stringify(rows), audit: audit.map((row) => row.action) };
}

test.each(ACTIONS)(
  "O5 %s appends its row in its own transaction: neither is there without the other",
  async (action, prepare) => {
    const act = await prepare();
    const before = await look();
    await expect(act(NO_AUDIT)).rejects.toMatchObject({ code: "22008" });
    expect(await look()).toEqual(before);
    await owner`insert into refuses_changes values (true)`;
    await expect(act()).rejects.toThrow("refused at the commit");
    await owner`delete from refuses_changes`;
    expect(await look()).toEqual(before);
    await act();
    const after = await look();
    expect(after.audit).toEqual([...before.audit, action]);
    expect(after.rows).not.toBe(before.rows);
  },
);
