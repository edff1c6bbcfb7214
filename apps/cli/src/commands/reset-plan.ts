import {
  countRows,
  findLiveWriters,
  findNamespace,
  getDatabaseIdentity,
  type Inventory,
  type LiveWriters,
  type Namespace,
  readInventory,
  type Sql,
} from "@keble-scraper/db";
import { KEPT_TABLES, planReset, RESET_TABLES, type ResetTable } from "@keble-scraper/db/commands/retention";
import type { Settings } from "@keble-scraper/service";
import type { CliContext } from "../cli-context.ts";
import { BY_CLI } from "../with-database.ts";
import { countKeys } from "./reset-redis.ts";

/** What `reset` works with: the database as the owner of its schema. */
export type ResetParts = { readonly context: CliContext; readonly settings: Settings; readonly sql: Sql };

/** What a dry run prints. Holds no secret. */
export type ResetReport = {
  readonly campaign: string;
  /** The audit row of this dry run. */
  readonly audit: string;
  readonly environment: string;
  readonly database: string;
  /** `keys` null: Redis did not answer. */
  readonly redis: { readonly prefix: string; readonly keys: number | null };
  /** Null: no store was claimed. `owner` is the row's. */
  readonly artifacts: Pick<Namespace, "kind" | "prefix" | "endpoint" | "bucket" | "directory" | "owner"> | null;
  readonly inventory: Inventory;
  readonly rows: Readonly<Record<ResetTable, number>>;
  readonly kept: readonly string[];
  readonly writers: LiveWriters;
};

/** The dry run: reads everything, deletes nothing, appends its audit row, and prints what an `--apply` has to show. */
export async function planAndReport(parts: ResetParts, campaign: string, form: "TEXT" | "JSON"): Promise<void> {
  const { context, settings, sql } = parts;
  const database = await getDatabaseIdentity(sql);
  const inventory = await readInventory(sql);
  const rows = await countRows(sql, RESET_TABLES);
  const writers = await findLiveWriters(sql, appRoleOf(settings.database));
  const namespace = await findNamespace(sql);
  const { url, prefix } = settings.redis;
  const keys = await countKeys(url, prefix).catch(() => null);
  const { objects, bytes, sha256 } = inventory;
  const plan = { campaign, database, inventory: sha256, objects, bytes };
  const audit = await planReset(sql, plan, BY_CLI, settings.retention.auditDays);
  const report: ResetReport = {
    campaign,
    audit,
    environment: settings.environment,
    database,
    redis: { prefix, keys },
    artifacts: namespace === null ? null : toPlace(namespace),
    inventory,
    rows,
    kept: KEPT_TABLES,
    writers,
  };
  context.print(form === "JSON" ? JSON.stringify(report, null, 2) : render(report));
}

/** The services' role, or null when they sign in as the owner of the schema. */
export function appRoleOf({ url, migrationUrl }: Settings["database"]): string | null {
  const [app, owner] = [url, migrationUrl].map((text) => decodeURIComponent(new URL(text).username));
  return app === undefined || app === "" || app === owner ? null : app;
}

function toPlace(row: Namespace): ResetReport["artifacts"] {
  const { kind, prefix, endpoint, bucket, directory, owner } = row;
  return { kind, prefix, endpoint, bucket, directory, owner };
}

function render(report: ResetReport): string {
  const { artifacts, inventory, redis, rows, writers } = report;
  const place =
    artifacts === null ? "none claimed" : (artifacts.directory ?? `${artifacts.endpoint} ${artifacts.bucket}`);
  const lines: readonly (readonly [string, string])[] = [
    ["campaign", report.campaign],
    ["environment", report.environment],
    ["database", report.database],
    ["redis", `${redis.prefix} (${redis.keys === null ? "no answer" : `${redis.keys} keys`})`],
    ["artifact owner", artifacts === null ? "none" : artifacts.owner],
    ["artifact store", artifacts === null ? place : `${place} ${artifacts.prefix}`],
    ["inventory", `${inventory.sha256} (${inventory.objects} objects, ${inventory.bytes} bytes)`],
    ["audit", report.audit],
    ...Object.entries(rows).map(([table, count]) => [`rows of ${table}`, String(count)] as const),
    ["kept", report.kept.join(", ")],
    ["writers", writers.connections.map(({ application, pid }) => `${application} (${pid})`).join(", ") || "none"],
    ["live leases", String(writers.leases)],
  ];
  return [
    "A dry run: nothing was deleted.",
    ...lines.map(([name, value]) => `  ${name.padEnd(28)} ${value}`),
    "To carry it out in development or test: stop every process, back the database up into a file, then",
    `  keble-scraper reset --apply --campaign ${report.campaign} --writer-stop <when they had stopped> --database '${report.database}' --redis '${redis.prefix}' --artifact-owner '${artifacts?.owner ?? ""}' --snapshot <file> --inventory ${inventory.sha256} --audit ${report.audit}`,
  ].join("\n");
}
