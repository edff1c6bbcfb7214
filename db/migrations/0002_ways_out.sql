-- Nothing waits for the disk here: what a crash loses costs one burst.
CREATE UNLOGGED TABLE "admission_clocks" (
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
ALTER TABLE "jobs" ADD COLUMN "reserved_micros" bigint;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "reserved_on" date;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "host_key" text;--> statement-breakpoint
-- Stored URLs are normalised: what follows the scheme is the host, with its port where it is not the scheme's own.
UPDATE "jobs" SET "host_key" = substring("target" ->> 'url' FROM '^https?://([^/?#]+)');--> statement-breakpoint
ALTER TABLE "jobs" ALTER COLUMN "host_key" SET NOT NULL;--> statement-breakpoint
-- The version before submits jobs without it for as long as it still runs.
CREATE FUNCTION fill_host_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.host_key := substring(NEW.target ->> 'url' FROM '^https?://([^/?#]+)');
  RETURN NEW;
END
$$;
--> statement-breakpoint
CREATE TRIGGER jobs_fill_host_key BEFORE INSERT ON jobs FOR EACH ROW WHEN (NEW.host_key IS NULL) EXECUTE FUNCTION fill_host_key();
--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "capture" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "egress" jsonb;--> statement-breakpoint
CREATE INDEX "budgets_period" ON "budgets" USING btree ("starts_on");--> statement-breakpoint
CREATE INDEX "host_holds_until" ON "host_holds" USING btree ("held_until");--> statement-breakpoint
CREATE INDEX "jobs_host_queued" ON "jobs" USING btree ("host_key") WHERE status = 'QUEUED';--> statement-breakpoint
CREATE INDEX "jobs_deferred" ON "jobs" USING btree ("deferred_by") WHERE deferred_by is not null;--> statement-breakpoint
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_reserved" CHECK (("jobs"."reserved_micros" is null) = ("jobs"."reserved_on" is null)
          and ("jobs"."reserved_micros" is null or ("jobs"."lease_token" is not null and "jobs"."reserved_micros" >= 0)));--> statement-breakpoint
DROP TRIGGER jobs_hold_terms ON jobs;
--> statement-breakpoint
CREATE TRIGGER jobs_hold_terms BEFORE UPDATE OF attempt_budget, deadline_at, max_body_bytes, cost_cap_micros, routes, target, host_key, capture, egress, created_at ON jobs
  FOR EACH ROW EXECUTE FUNCTION hold_job_terms();
--> statement-breakpoint
-- The first day of a day's month.
CREATE FUNCTION month_of(day date) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT date_trunc('month', day::timestamp)::date
$$;
