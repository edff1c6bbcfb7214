CREATE TABLE "artifact_pins" (
	"artifact_id" uuid NOT NULL,
	"owner" text NOT NULL,
	"retention_revision" bigint NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp (3) with time zone,
	CONSTRAINT "artifact_pins_artifact_id_owner_pk" PRIMARY KEY("artifact_id","owner"),
	CONSTRAINT "artifact_pins_revision" CHECK ("artifact_pins"."retention_revision" between 1 and 9007199254740991)
);
--> statement-breakpoint
CREATE TABLE "cache_entries" (
	"key" "bytea" NOT NULL,
	"caller_id" text NOT NULL,
	"artifact_id" uuid,
	"result" jsonb NOT NULL,
	"size_bytes" bigint NOT NULL,
	"etag" text,
	"last_modified" text,
	"validated_at" timestamp (3) with time zone NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "cache_entries_key_caller_id_pk" PRIMARY KEY("key","caller_id"),
	CONSTRAINT "cache_entries_key" CHECK (octet_length("cache_entries"."key") = 32)
);
--> statement-breakpoint
CREATE TABLE "cache_flights" (
	"key" "bytea" NOT NULL,
	"caller_id" text NOT NULL,
	"job_id" uuid NOT NULL,
	"lease_token" uuid NOT NULL,
	"held_until" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "cache_flights_key_caller_id_pk" PRIMARY KEY("key","caller_id")
);
--> statement-breakpoint
CREATE TABLE "purge_turn" (
	"id" smallint PRIMARY KEY NOT NULL,
	"minute" timestamp (3) with time zone NOT NULL,
	"purged" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "purge_turn_one" CHECK ("purge_turn"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE "reset_runs" (
	"campaign" text PRIMARY KEY NOT NULL,
	"state" text NOT NULL,
	"audit_id" uuid NOT NULL,
	"evidence" jsonb NOT NULL,
	"started_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"ended_at" timestamp (3) with time zone,
	CONSTRAINT "reset_runs_state" CHECK ("reset_runs"."state" in ('RUNNING', 'DONE')),
	CONSTRAINT "reset_runs_ended" CHECK (("reset_runs"."state" = 'DONE') = ("reset_runs"."ended_at" is not null))
);
--> statement-breakpoint
CREATE TABLE "store_namespace" (
	"id" smallint PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"prefix" text NOT NULL,
	"endpoint" text,
	"bucket" text,
	"directory" text,
	"owner" text NOT NULL,
	"claim" uuid NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"claimed_at" timestamp (3) with time zone,
	CONSTRAINT "store_namespace_one" CHECK ("store_namespace"."id" = 1),
	CONSTRAINT "store_namespace_place" CHECK (case "store_namespace"."kind"
            when 'S3' then "store_namespace"."endpoint" is not null and "store_namespace"."bucket" is not null and "store_namespace"."directory" is null
            when 'LOCAL' then "store_namespace"."endpoint" is null and "store_namespace"."bucket" is null and "store_namespace"."directory" is not null
            else false end)
);
--> statement-breakpoint
CREATE TABLE "store_findings" (
	"id" uuid PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"sha256" "bytea" NOT NULL,
	"generation" text NOT NULL,
	"found_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "store_findings_kind" CHECK ("store_findings"."kind" in ('MISSING', 'DAMAGED', 'ORPHAN'))
);
--> statement-breakpoint
CREATE TABLE "store_scrub" (
	"id" smallint PRIMARY KEY NOT NULL,
	"cursor" text,
	"pass_started_at" timestamp (3) with time zone,
	"pass_ended_at" timestamp (3) with time zone,
	CONSTRAINT "store_scrub_one" CHECK ("store_scrub"."id" = 1)
);
--> statement-breakpoint
ALTER TABLE "artifacts" DROP CONSTRAINT "artifacts_blob";--> statement-breakpoint
ALTER TABLE "blobs" DROP CONSTRAINT "blobs_state";--> statement-breakpoint
DROP INDEX "artifacts_available";--> statement-breakpoint
ALTER TABLE "artifacts" ADD COLUMN "pin_count" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "artifacts" ADD COLUMN "review_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL;--> statement-breakpoint
ALTER TABLE "blobs" ADD COLUMN "verified_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "cache_key" "bytea";--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "callback_outcome" text;--> statement-breakpoint
ALTER TABLE "object_deletions" ADD COLUMN "blob_id" uuid;--> statement-breakpoint
ALTER TABLE "artifact_pins" ADD CONSTRAINT "artifact_pins_artifact_id_artifacts_id_fk" FOREIGN KEY ("artifact_id") REFERENCES "public"."artifacts"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "cache_entries" ADD CONSTRAINT "cache_entries_artifact_id_artifacts_id_fk" FOREIGN KEY ("artifact_id") REFERENCES "public"."artifacts"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "cache_entries_artifact" ON "cache_entries" USING btree ("artifact_id","expires_at") WHERE artifact_id is not null;--> statement-breakpoint
CREATE INDEX "cache_entries_expires" ON "cache_entries" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "cache_flights_held" ON "cache_flights" USING btree ("held_until");--> statement-breakpoint
CREATE INDEX "store_findings_kind" ON "store_findings" USING btree ("kind","found_at");--> statement-breakpoint
CREATE INDEX "store_findings_expires" ON "store_findings" USING btree ("expires_at");--> statement-breakpoint
ALTER TABLE "object_deletions" ADD CONSTRAINT "object_deletions_blob_id_blobs_id_fk" FOREIGN KEY ("blob_id") REFERENCES "public"."blobs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "artifacts_available_blob" ON "artifacts" USING btree ("blob_id","caller_id");--> statement-breakpoint
CREATE INDEX "artifacts_review" ON "artifacts" USING btree ("state","review_at");--> statement-breakpoint
CREATE INDEX "attempts_evidence" ON "attempts" USING btree ("evidence_artifact_id","finished_at") WHERE evidence_artifact_id is not null;--> statement-breakpoint
CREATE INDEX "audit_events_action" ON "audit_events" USING btree ("action","id");--> statement-breakpoint
CREATE INDEX "audit_events_actor" ON "audit_events" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "audit_events_caller" ON "audit_events" USING btree ("caller_id","id");--> statement-breakpoint
CREATE INDEX "blobs_verified" ON "blobs" USING btree ("verified_at") WHERE state = 'AVAILABLE';--> statement-breakpoint
CREATE INDEX "callback_events_expires" ON "callback_events" USING btree ("expires_at") WHERE expires_at is not null;--> statement-breakpoint
CREATE INDEX "jobs_artifact" ON "jobs" USING btree ("artifact_id","finished_at") WHERE artifact_id is not null;--> statement-breakpoint
CREATE INDEX "jobs_expires" ON "jobs" USING btree ("expires_at") WHERE expires_at is not null;--> statement-breakpoint
CREATE INDEX "jobs_finished" ON "jobs" USING brin ("finished_at");--> statement-breakpoint
CREATE UNIQUE INDEX "object_deletions_object" ON "object_deletions" USING btree ("sha256","generation");--> statement-breakpoint
CREATE UNIQUE INDEX "object_deletions_blob" ON "object_deletions" USING btree ("blob_id") WHERE blob_id is not null;--> statement-breakpoint
-- "blobs"."deleted_at" stays until the next migration: the version before reads it for as long as it still runs.
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_deleted" CHECK (("artifacts"."state" = 'DELETED') = ("artifacts"."deleted_at" is not null));--> statement-breakpoint
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_pin_count" CHECK ("artifacts"."pin_count" >= 0);--> statement-breakpoint
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_blob" CHECK (("artifacts"."state" = 'AVAILABLE') = ("artifacts"."blob_id" is not null));--> statement-breakpoint
ALTER TABLE "blobs" ADD CONSTRAINT "blobs_state" CHECK ("blobs"."state" in ('AVAILABLE', 'DELETING'));--> statement-breakpoint
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_cache_key" CHECK (octet_length("jobs"."cache_key") = 32);--> statement-breakpoint
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_callback_outcome" CHECK ("jobs"."callback_outcome" in ('DELIVERED', 'DISCARDED'));--> statement-breakpoint
INSERT INTO "store_scrub" ("id") VALUES (1);
--> statement-breakpoint
INSERT INTO "purge_turn" ("id", "minute") VALUES (1, date_trunc('minute', clock_timestamp()));
--> statement-breakpoint
DROP TRIGGER jobs_hold_terms ON jobs;
--> statement-breakpoint
CREATE TRIGGER jobs_hold_terms BEFORE UPDATE OF attempt_budget, deadline_at, max_body_bytes, cost_cap_micros, routes, target, host_key, capture, egress, freshness, cache_key, created_at ON jobs
  FOR EACH ROW EXECUTE FUNCTION hold_job_terms();
