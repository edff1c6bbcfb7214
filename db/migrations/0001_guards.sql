-- UUID version 7 with millisecond time, for rows whose ids are made in a statement (Postgres 15 has no uuidv7()).
CREATE FUNCTION uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT encode(
    set_byte(
      overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
      6, (get_byte(uuid_send(gen_random_uuid()), 6) & 15) | 112),
    'hex')::uuid
$$;
--> statement-breakpoint
-- The next whole millisecond: due times are never earlier than what they were computed from.
CREATE FUNCTION ceil_ms(at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT date_trunc('milliseconds', at + interval '999 microseconds')
$$;
--> statement-breakpoint
-- RFC 3339 UTC with milliseconds, as the public API writes times.
CREATE FUNCTION rfc3339(at timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;
--> statement-breakpoint
-- Attempts never change and leave only by the cascade from their job: a direct delete runs this at trigger depth 1.
CREATE FUNCTION hold_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN RETURN OLD; END IF;
  RAISE EXCEPTION 'attempts never change' USING ERRCODE = 'restrict_violation';
END
$$;
--> statement-breakpoint
CREATE TRIGGER attempts_hold BEFORE UPDATE OR DELETE ON attempts FOR EACH ROW EXECUTE FUNCTION hold_attempts();
--> statement-breakpoint
CREATE TRIGGER attempts_hold_truncate BEFORE TRUNCATE ON attempts FOR EACH STATEMENT EXECUTE FUNCTION hold_attempts();
--> statement-breakpoint
-- Audit rows never change and leave only by their own clock.
CREATE FUNCTION hold_audit_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF OLD.expires_at <= clock_timestamp() THEN RETURN OLD; END IF;
  END IF;
  RAISE EXCEPTION 'audit events never change' USING ERRCODE = 'restrict_violation';
END
$$;
--> statement-breakpoint
CREATE TRIGGER audit_events_hold BEFORE UPDATE OR DELETE ON audit_events FOR EACH ROW EXECUTE FUNCTION hold_audit_events();
--> statement-breakpoint
CREATE TRIGGER audit_events_hold_truncate BEFORE TRUNCATE ON audit_events FOR EACH STATEMENT EXECUTE FUNCTION hold_audit_events();
--> statement-breakpoint
-- A terminal job keeps its status, result, failure and attempts for ever; its expiry and its hold on bytes may change.
CREATE FUNCTION hold_terminal_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a terminal job never changes' USING ERRCODE = 'restrict_violation';
END
$$;
--> statement-breakpoint
CREATE TRIGGER jobs_hold_terminal BEFORE UPDATE OF status, result, failure, attempts_used, attempt_number, finished_at ON jobs
  FOR EACH ROW WHEN (OLD.finished_at IS NOT NULL) EXECUTE FUNCTION hold_terminal_jobs();
--> statement-breakpoint
-- What a caller asked for, its budget and its deadline are written once.
CREATE FUNCTION hold_job_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the terms of a job never change' USING ERRCODE = 'restrict_violation';
END
$$;
--> statement-breakpoint
CREATE TRIGGER jobs_hold_terms BEFORE UPDATE OF attempt_budget, deadline_at, max_body_bytes, cost_cap_micros, routes, target, created_at ON jobs
  FOR EACH ROW EXECUTE FUNCTION hold_job_terms();
