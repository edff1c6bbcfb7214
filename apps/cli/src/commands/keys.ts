import { type ApiKey, CreateApiKey, SCOPES } from "@keble-scraper/contract";
import { type Database, listApiKeys } from "@keble-scraper/db";
import { bootstrapOperatorKey, createApiKey, revokeApiKey } from "@keble-scraper/db/commands/keys";
import { type Command, Option } from "commander";
import type { CliContext } from "../cli-context.ts";
import { CliError } from "../cli-error.ts";
import { readSettings, UNREAD_SETTINGS } from "../read-settings.ts";
import { toDatabaseError } from "../to-database-error.ts";
import { BY_CLI, withDatabase } from "../with-database.ts";

const PAGE = 200;

/** What a command works with. `auditDays` is how long the audit rows that it writes are kept. */
type Work = { readonly context: CliContext; readonly database: Database; readonly auditDays: number };

type CreateOptions = {
  readonly name: string;
  readonly caller?: string;
  readonly scope?: readonly string[];
  readonly expires?: string;
};

/** Adds `keys bootstrap | create | list | revoke`: they work on the database itself and need no running service. */
export function addKeysCommands(program: Command, context: CliContext): void {
  const keys = program.command("keys").description("Make, list and revoke API keys, straight in the database");
  keys
    .command("bootstrap")
    .description("Make the first operator key of a deployment; refused while one is in use")
    .option("--name <name>", "the key's name", "bootstrap")
    .action((options: { name: string }) => onDatabase(context, (work) => bootstrap(work, options.name)));
  keys
    .command("create")
    .description("Make a service key for a caller, or an operator key; the secret is shown once")
    .requiredOption("--name <name>", "the key's name")
    .option("--caller <id>", "the caller a service key belongs to; without it, an operator key")
    .addOption(new Option("--scope <scopes...>", "what a service key may do").choices(SCOPES))
    .option("--expires <time>", "when it expires, RFC 3339; without it, never")
    .action((options: CreateOptions) => onDatabase(context, (work) => create(work, options)));
  keys
    .command("list")
    .description("List all keys, newest first, revoked and expired ones too")
    .action(() => onDatabase(context, list));
  keys
    .command("revoke")
    .description("Revoke a key")
    .argument("<id>", "the key's id")
    .action((id: string) => onDatabase(context, (work) => revoke(work, id)));
}

/** An operator key, whether or not there are others. `auditDays` is how long its audit row is kept. */
export function createOperatorKey(
  database: Database,
  name: string,
  auditDays: number,
): Promise<ApiKey & { secret: string }> {
  const key = { name, kind: "OPERATOR", callerId: null, scopes: [], expiresAt: null } as const;
  return createApiKey(database.commands, key, BY_CLI, auditDays);
}

async function bootstrap({ context, database, auditDays }: Work, name: string): Promise<void> {
  const made = await bootstrapOperatorKey(database.commands, CreateApiKey.shape.name.parse(name), BY_CLI, auditDays);
  if (made.state === "IN_USE") {
    const { name: other, id } = made.key;
    throw new CliError(
      "USAGE",
      `There is an operator key already: ${other} (${id}). Make others with \`keys create\`.`,
    );
  }
  context.print(made.key.secret);
}

async function create({ context, database, auditDays }: Work, options: CreateOptions): Promise<void> {
  const parsed = CreateApiKey.safeParse({
    name: options.name,
    kind: options.caller === undefined ? "OPERATOR" : "SERVICE",
    callerId: options.caller,
    scopes: options.scope ?? [],
    expiresAt: options.expires,
  });
  if (!parsed.success) {
    throw new CliError(
      "USAGE",
      parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("\n"),
    );
  }
  const { name, kind, callerId, scopes, expiresAt } = parsed.data;
  const key = await createApiKey(
    database.commands,
    { name, kind, callerId: callerId ?? null, scopes, expiresAt: expiresAt === undefined ? null : new Date(expiresAt) },
    BY_CLI,
    auditDays,
  );
  context.print(JSON.stringify(key, null, 2));
}

async function list({ context, database }: Work): Promise<void> {
  for await (const key of allKeys(database)) context.print(JSON.stringify(key));
}

async function revoke({ context, database, auditDays }: Work, id: string): Promise<void> {
  if (!/^[0-9a-f-]{36}$/i.test(id)) throw new CliError("USAGE", "That is not the id of a key");
  const revoked = await revokeApiKey(database.commands, id, BY_CLI, auditDays);
  if (!revoked.ok) throw new CliError("USAGE", "There is no key with this id");
  context.print(JSON.stringify(revoked.value, null, 2));
}

async function* allKeys(database: Database): AsyncGenerator<ApiKey> {
  let afterId: string | null = null;
  for (;;) {
    const page: { items: readonly ApiKey[] } = await listApiKeys(database.reads, { limit: PAGE, afterId });
    yield* page.items;
    const last = page.items.at(-1);
    if (last === undefined || page.items.length < PAGE) return;
    afterId = last.id;
  }
}

/** Does the work of a command line on the database that the settings name. */
async function onDatabase(context: CliContext, work: (parts: Work) => Promise<void>): Promise<void> {
  const { database: place, retention } = readSettings(context, { base: UNREAD_SETTINGS });
  try {
    await withDatabase(place.url, (database) => work({ context, database, auditDays: retention.auditDays }));
  } catch (error) {
    throw toDatabaseError(error, "SCRAPER_DATABASE_URL");
  }
}
