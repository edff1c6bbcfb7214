CREATE TABLE "api_keys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"caller_id" text,
	"kind" text NOT NULL,
	"key_sha256" "bytea" NOT NULL,
	"name" text NOT NULL,
	"scopes" text[] NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp (3) with time zone,
	"revoked_at" timestamp (3) with time zone,
	CONSTRAINT "api_keys_kind" CHECK ("api_keys"."kind" in ('SERVICE', 'OPERATOR')),
	CONSTRAINT "api_keys_caller" CHECK (("api_keys"."kind" = 'SERVICE') = ("api_keys"."caller_id" is not null))
);
--> statement-breakpoint
CREATE TABLE "artifacts" (
	"id" uuid PRIMARY KEY NOT NULL,
	"caller_id" text NOT NULL,
	"blob_id" uuid,
	"state" text DEFAULT 'AVAILABLE' NOT NULL,
	"sha256" "bytea" NOT NULL,
	"size_bytes" bigint NOT NULL,
	"content_type" text,
	"source_url" text NOT NULL,
	"final_url" text NOT NULL,
	"http_status" integer NOT NULL,
	"fetched_at" timestamp (3) with time zone NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"deleted_at" timestamp (3) with time zone,
	CONSTRAINT "artifacts_state" CHECK ("artifacts"."state" in ('AVAILABLE', 'DELETED')),
	CONSTRAINT "artifacts_blob" CHECK ("artifacts"."state" <> 'AVAILABLE' or "artifacts"."blob_id" is not null)
);
--> statement-breakpoint
CREATE TABLE "attempts" (
	"id" uuid PRIMARY KEY NOT NULL,
	"job_id" uuid NOT NULL,
	"evidence_artifact_id" uuid,
	"outcome" text NOT NULL,
	"ordinal" integer NOT NULL,
	"lease_token" uuid NOT NULL,
	"route" text NOT NULL,
	"http_status" integer,
	"failure" jsonb,
	"body_bytes" bigint DEFAULT 0 NOT NULL,
	"wire_bytes" bigint DEFAULT 0 NOT NULL,
	"timings" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"cost_reserved_micros" bigint DEFAULT 0 NOT NULL,
	"cost_micros" bigint DEFAULT 0 NOT NULL,
	"provider_request_id" text,
	"started_at" timestamp (3) with time zone NOT NULL,
	"finished_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "attempts_outcome" CHECK ("attempts"."outcome" in ('SUCCEEDED', 'FAILED', 'LOST', 'CANCELLED', 'HANDED_BACK')),
	CONSTRAINT "attempts_failure" CHECK (("attempts"."outcome" in ('FAILED', 'LOST')) = ("attempts"."failure" is not null))
);
--> statement-breakpoint
CREATE TABLE "audit_events" (
	"id" uuid PRIMARY KEY NOT NULL,
	"caller_id" text,
	"action" text NOT NULL,
	"actor" text NOT NULL,
	"subject" text NOT NULL,
	"request_id" text,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"occurred_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "blobs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"state" text DEFAULT 'AVAILABLE' NOT NULL,
	"sha256" "bytea" NOT NULL,
	"generation" text NOT NULL,
	"size_bytes" bigint NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"deleted_at" timestamp (3) with time zone,
	CONSTRAINT "blobs_state" CHECK ("blobs"."state" in ('AVAILABLE', 'DELETING', 'DELETED')),
	CONSTRAINT "blobs_sha256" CHECK (octet_length("blobs"."sha256") = 32)
);
--> statement-breakpoint
CREATE TABLE "callback_endpoints" (
	"id" uuid PRIMARY KEY NOT NULL,
	"caller_id" text NOT NULL,
	"name" text NOT NULL,
	"url" text NOT NULL,
	"events" text[],
	"attempt_budget" smallint NOT NULL,
	"timeout_ms" integer NOT NULL,
	"max_concurrency" smallint NOT NULL,
	"disabled_reason" text,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"disabled_at" timestamp (3) with time zone,
	"deleted_at" timestamp (3) with time zone,
	CONSTRAINT "callback_endpoints_disabled" CHECK (("callback_endpoints"."disabled_at" is null) = ("callback_endpoints"."disabled_reason" is null)),
	CONSTRAINT "callback_endpoints_reason" CHECK ("callback_endpoints"."disabled_reason" in ('OPERATOR', 'CALLER', 'GONE'))
);
--> statement-breakpoint
CREATE TABLE "callback_secrets" (
	"id" uuid PRIMARY KEY NOT NULL,
	"endpoint_id" uuid NOT NULL,
	"key_id" text NOT NULL,
	"ciphertext" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "callback_deliveries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"event_id" uuid NOT NULL,
	"endpoint_id" uuid NOT NULL,
	"state" text DEFAULT 'PENDING' NOT NULL,
	"trigger" text DEFAULT 'FIRST' NOT NULL,
	"ordinal" integer DEFAULT 1 NOT NULL,
	"attempt_budget" smallint NOT NULL,
	"attempts_used" smallint DEFAULT 0 NOT NULL,
	"lease_token" uuid,
	"dead_letter_reason" text,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"due_at" timestamp (3) with time zone NOT NULL,
	"lease_until" timestamp (3) with time zone,
	"try_started_at" timestamp (3) with time zone,
	"ended_at" timestamp (3) with time zone,
	CONSTRAINT "callback_deliveries_state" CHECK ("callback_deliveries"."state" in ('PENDING', 'LEASED', 'DELIVERED', 'DEAD_LETTER')),
	CONSTRAINT "callback_deliveries_trigger" CHECK ("callback_deliveries"."trigger" in ('FIRST', 'REPLAY')),
	CONSTRAINT "callback_deliveries_leased" CHECK (("callback_deliveries"."state" = 'LEASED') = ("callback_deliveries"."lease_token" is not null)),
	CONSTRAINT "callback_deliveries_ended" CHECK (("callback_deliveries"."state" in ('DELIVERED', 'DEAD_LETTER')) = ("callback_deliveries"."ended_at" is not null)),
	CONSTRAINT "callback_deliveries_budget" CHECK ("callback_deliveries"."attempts_used" between 0 and "callback_deliveries"."attempt_budget")
);
--> statement-breakpoint
CREATE TABLE "callback_events" (
	"id" uuid PRIMARY KEY NOT NULL,
	"job_id" uuid NOT NULL,
	"endpoint_id" uuid NOT NULL,
	"caller_id" text NOT NULL,
	"state" text NOT NULL,
	"type" text NOT NULL,
	"dead_letter_reason" text,
	"payload" text,
	"occurred_at" timestamp (3) with time zone NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"ended_at" timestamp (3) with time zone,
	"expires_at" timestamp (3) with time zone,
	CONSTRAINT "callback_events_state" CHECK ("callback_events"."state" in ('PENDING', 'LEASED', 'DELIVERED', 'DEAD_LETTER', 'DISCARDED')),
	CONSTRAINT "callback_events_type" CHECK ("callback_events"."type" in ('job.succeeded', 'job.failed', 'job.cancelled')),
	CONSTRAINT "callback_events_reason" CHECK (("callback_events"."state" = 'DEAD_LETTER') = ("callback_events"."dead_letter_reason" is not null)),
	CONSTRAINT "callback_events_dead_letter_reason" CHECK ("callback_events"."dead_letter_reason" in ('BUDGET_SPENT', 'ENDPOINT_DISABLED', 'ENDPOINT_DELETED', 'TARGET_FORBIDDEN'))
);
--> statement-breakpoint
CREATE TABLE "callback_tries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"delivery_id" uuid NOT NULL,
	"outcome" text NOT NULL,
	"ordinal" integer NOT NULL,
	"lease_token" uuid NOT NULL,
	"http_status" integer,
	"failure" jsonb,
	"latency_ms" integer,
	"started_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "callback_tries_outcome" CHECK ("callback_tries"."outcome" in ('SUCCEEDED', 'FAILED', 'UNKNOWN')),
	CONSTRAINT "callback_tries_failure" CHECK (("callback_tries"."outcome" = 'SUCCEEDED') = ("callback_tries"."failure" is null))
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"caller_id" text NOT NULL,
	"callback_endpoint_id" uuid,
	"artifact_id" uuid,
	"status" text DEFAULT 'QUEUED' NOT NULL,
	"attempts_used" smallint DEFAULT 0 NOT NULL,
	"attempt_number" integer DEFAULT 0 NOT NULL,
	"route_index" smallint DEFAULT 0 NOT NULL,
	"lease_token" uuid,
	"attempt_route" text,
	"idempotency_key" text,
	"request_sha256" "bytea" NOT NULL,
	"target" jsonb NOT NULL,
	"transport" text NOT NULL,
	"routes" text[] NOT NULL,
	"freshness" text NOT NULL,
	"accept" text NOT NULL,
	"content_types" text[],
	"robots" text NOT NULL,
	"labels" jsonb NOT NULL,
	"attempt_budget" smallint NOT NULL,
	"max_body_bytes" bigint NOT NULL,
	"cost_cap_micros" bigint NOT NULL,
	"cost_micros" bigint DEFAULT 0 NOT NULL,
	"result" jsonb,
	"failure" jsonb,
	"created_at" timestamp (3) with time zone NOT NULL,
	"due_at" timestamp (3) with time zone NOT NULL,
	"deadline_at" timestamp (3) with time zone NOT NULL,
	"lease_until" timestamp (3) with time zone,
	"attempt_started_at" timestamp (3) with time zone,
	"suspected_at" timestamp (3) with time zone,
	"finished_at" timestamp (3) with time zone,
	"expires_at" timestamp (3) with time zone,
	CONSTRAINT "jobs_status" CHECK ("jobs"."status" in ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
	CONSTRAINT "jobs_running" CHECK (("jobs"."status" = 'RUNNING') = ("jobs"."lease_token" is not null)),
	CONSTRAINT "jobs_lease" CHECK (("jobs"."lease_token" is null) = ("jobs"."lease_until" is null)),
	CONSTRAINT "jobs_finished" CHECK (("jobs"."status" in ('SUCCEEDED', 'FAILED', 'CANCELLED')) = ("jobs"."finished_at" is not null)),
	CONSTRAINT "jobs_result" CHECK (("jobs"."status" = 'SUCCEEDED') = ("jobs"."result" is not null)),
	CONSTRAINT "jobs_failure" CHECK (("jobs"."status" = 'FAILED') = ("jobs"."failure" is not null)),
	CONSTRAINT "jobs_budget" CHECK ("jobs"."attempts_used" between 0 and "jobs"."attempt_budget")
);
--> statement-breakpoint
CREATE TABLE "object_deletions" (
	"id" uuid PRIMARY KEY NOT NULL,
	"sha256" "bytea" NOT NULL,
	"generation" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"due_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_blob_id_blobs_id_fk" FOREIGN KEY ("blob_id") REFERENCES "public"."blobs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_job_id_jobs_id_fk" FOREIGN KEY ("job_id") REFERENCES "public"."jobs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_evidence_artifact_id_artifacts_id_fk" FOREIGN KEY ("evidence_artifact_id") REFERENCES "public"."artifacts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "callback_secrets" ADD CONSTRAINT "callback_secrets_endpoint_id_callback_endpoints_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "public"."callback_endpoints"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "callback_deliveries" ADD CONSTRAINT "callback_deliveries_event_id_callback_events_id_fk" FOREIGN KEY ("event_id") REFERENCES "public"."callback_events"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "callback_deliveries" ADD CONSTRAINT "callback_deliveries_endpoint_id_callback_endpoints_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "public"."callback_endpoints"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "callback_events" ADD CONSTRAINT "callback_events_job_id_jobs_id_fk" FOREIGN KEY ("job_id") REFERENCES "public"."jobs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "callback_events" ADD CONSTRAINT "callback_events_endpoint_id_callback_endpoints_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "public"."callback_endpoints"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "callback_tries" ADD CONSTRAINT "callback_tries_delivery_id_callback_deliveries_id_fk" FOREIGN KEY ("delivery_id") REFERENCES "public"."callback_deliveries"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_callback_endpoint_id_callback_endpoints_id_fk" FOREIGN KEY ("callback_endpoint_id") REFERENCES "public"."callback_endpoints"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_artifact_id_artifacts_id_fk" FOREIGN KEY ("artifact_id") REFERENCES "public"."artifacts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_key_sha256" ON "api_keys" USING btree ("key_sha256");--> statement-breakpoint
CREATE UNIQUE INDEX "artifacts_available" ON "artifacts" USING btree ("caller_id","blob_id") WHERE state = 'AVAILABLE';--> statement-breakpoint
CREATE UNIQUE INDEX "attempts_job_ordinal" ON "attempts" USING btree ("job_id","ordinal");--> statement-breakpoint
CREATE INDEX "audit_events_expires" ON "audit_events" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "audit_events_subject" ON "audit_events" USING btree ("subject","id");--> statement-breakpoint
CREATE UNIQUE INDEX "blobs_available" ON "blobs" USING btree ("sha256") WHERE state = 'AVAILABLE';--> statement-breakpoint
CREATE UNIQUE INDEX "callback_endpoints_name" ON "callback_endpoints" USING btree ("caller_id","name") WHERE deleted_at is null;--> statement-breakpoint
CREATE INDEX "callback_endpoints_caller" ON "callback_endpoints" USING btree ("caller_id","id");--> statement-breakpoint
CREATE INDEX "callback_secrets_endpoint" ON "callback_secrets" USING btree ("endpoint_id");--> statement-breakpoint
CREATE UNIQUE INDEX "callback_deliveries_event_ordinal" ON "callback_deliveries" USING btree ("event_id","ordinal");--> statement-breakpoint
CREATE UNIQUE INDEX "callback_deliveries_open" ON "callback_deliveries" USING btree ("event_id") WHERE ended_at is null;--> statement-breakpoint
CREATE INDEX "callback_deliveries_claim" ON "callback_deliveries" USING btree ("endpoint_id","due_at") WHERE state = 'PENDING';--> statement-breakpoint
CREATE INDEX "callback_deliveries_leased" ON "callback_deliveries" USING btree ("endpoint_id") WHERE lease_token is not null;--> statement-breakpoint
CREATE INDEX "callback_deliveries_lease" ON "callback_deliveries" USING btree ("lease_until") WHERE lease_token is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "callback_events_job" ON "callback_events" USING btree ("job_id");--> statement-breakpoint
CREATE INDEX "callback_events_endpoint" ON "callback_events" USING btree ("endpoint_id","id");--> statement-breakpoint
CREATE INDEX "callback_events_stuck" ON "callback_events" USING btree ("state","id") WHERE state in ('DEAD_LETTER', 'DISCARDED');--> statement-breakpoint
CREATE INDEX "callback_events_caller" ON "callback_events" USING btree ("caller_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "callback_tries_delivery_ordinal" ON "callback_tries" USING btree ("delivery_id","ordinal");--> statement-breakpoint
CREATE INDEX "jobs_claim" ON "jobs" USING btree ("transport","caller_id","due_at","deadline_at") WHERE status = 'QUEUED' and suspected_at is null;--> statement-breakpoint
CREATE INDEX "jobs_claim_suspect" ON "jobs" USING btree ("transport","caller_id","due_at","deadline_at") WHERE status = 'QUEUED' and suspected_at is not null;--> statement-breakpoint
CREATE INDEX "jobs_due" ON "jobs" USING btree ("due_at") WHERE status = 'QUEUED';--> statement-breakpoint
CREATE INDEX "jobs_lease" ON "jobs" USING btree ("lease_until") WHERE lease_token is not null;--> statement-breakpoint
CREATE INDEX "jobs_running_caller" ON "jobs" USING btree ("caller_id") WHERE lease_token is not null;--> statement-breakpoint
CREATE INDEX "jobs_deadline" ON "jobs" USING btree ("deadline_at") WHERE finished_at is null;--> statement-breakpoint
CREATE UNIQUE INDEX "jobs_idempotency" ON "jobs" USING btree ("caller_id","idempotency_key") WHERE idempotency_key is not null;--> statement-breakpoint
CREATE INDEX "jobs_caller" ON "jobs" USING btree ("caller_id","id");--> statement-breakpoint
CREATE INDEX "jobs_open" ON "jobs" USING btree ("caller_id","id") WHERE finished_at is null;--> statement-breakpoint
CREATE INDEX "jobs_ended_caller" ON "jobs" USING btree ("caller_id","status","id") WHERE finished_at is not null;--> statement-breakpoint
CREATE INDEX "jobs_ended" ON "jobs" USING btree ("status","id") WHERE finished_at is not null;--> statement-breakpoint
CREATE INDEX "jobs_labels" ON "jobs" USING gin (labels jsonb_path_ops) WHERE labels <> '{}'::jsonb;--> statement-breakpoint
CREATE INDEX "object_deletions_due" ON "object_deletions" USING btree ("due_at");