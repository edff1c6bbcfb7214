CREATE TABLE "admission_clocks" (
	"key" text PRIMARY KEY NOT NULL,
	"next_at_ms" double precision NOT NULL
);
--> statement-breakpoint
CREATE TABLE "budgets" (
	"scope" text NOT NULL,
	"name" text NOT NULL,
	"period" text NOT NULL,
	"starts_on" date NOT NULL,
	"settled_micros" bigint DEFAULT 0 NOT NULL,
	"reserved_micros" bigint DEFAULT 0 NOT NULL,
	"overrun_micros" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "budgets_scope_name_period_starts_on_pk" PRIMARY KEY("scope","name","period","starts_on"),
	CONSTRAINT "budgets_scope" CHECK ("budgets"."scope" in ('ROUTE', 'CALLER')),
	CONSTRAINT "budgets_period" CHECK ("budgets"."period" in ('DAY', 'MONTH')),
	CONSTRAINT "budgets_amounts" CHECK ("budgets"."settled_micros" >= 0 and "budgets"."reserved_micros" >= 0 and "budgets"."overrun_micros" >= 0)
);
--> statement-breakpoint
CREATE TABLE "reservations" (
	"lease_token" uuid PRIMARY KEY NOT NULL,
	"job_id" uuid NOT NULL,
	"caller_id" text NOT NULL,
	"route" text NOT NULL,
	"day" date NOT NULL,
	"reserved_micros" bigint NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "reservations_amount" CHECK ("reservations"."reserved_micros" >= 0)
);
--> statement-breakpoint
CREATE TABLE "host_holds" (
	"host_key" text PRIMARY KEY NOT NULL,
	"held_until" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "route_quarantines" (
	"route" text PRIMARY KEY NOT NULL,
	"job_id" uuid,
	"reason" text NOT NULL,
	"native_code" text,
	"actor" text NOT NULL,
	"note" text,
	"quarantined_at" timestamp (3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"lifts_at" timestamp (3) with time zone,
	"probed_at" timestamp (3) with time zone,
	CONSTRAINT "route_quarantines_lifts" CHECK ("route_quarantines"."lifts_at" is null or "route_quarantines"."lifts_at" > "route_quarantines"."quarantined_at")
);
--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "deferred_by" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "booking" jsonb;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "host_key" text;--> statement-breakpoint
-- Stored URLs are normalised: what follows the scheme is the host, with its port where it is not the scheme's own.
UPDATE "jobs" SET "host_key" = substring("target" ->> 'url' FROM '^https?://([^/?#]+)');--> statement-breakpoint
ALTER TABLE "jobs" ALTER COLUMN "host_key" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "capture" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "egress" jsonb;--> statement-breakpoint
ALTER TABLE "reservations" ADD CONSTRAINT "reservations_job_id_jobs_id_fk" FOREIGN KEY ("job_id") REFERENCES "public"."jobs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "budgets_period" ON "budgets" USING btree ("starts_on");--> statement-breakpoint
CREATE INDEX "reservations_job" ON "reservations" USING btree ("job_id");--> statement-breakpoint
CREATE INDEX "host_holds_until" ON "host_holds" USING btree ("held_until");--> statement-breakpoint
CREATE INDEX "jobs_host_queued" ON "jobs" USING btree ("host_key") WHERE status = 'QUEUED';--> statement-breakpoint
CREATE INDEX "jobs_deferred" ON "jobs" USING btree ("deferred_by") WHERE deferred_by is not null;--> statement-breakpoint
DROP TRIGGER jobs_hold_terms ON jobs;
--> statement-breakpoint
CREATE TRIGGER jobs_hold_terms BEFORE UPDATE OF attempt_budget, deadline_at, max_body_bytes, cost_cap_micros, routes, target, host_key, capture, egress, created_at ON jobs
  FOR EACH ROW EXECUTE FUNCTION hold_job_terms();
