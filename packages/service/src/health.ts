/** What a part says about itself. `degraded` is slower or less, never wrong: it does not fail readiness. */
export type HealthState = "ok" | "degraded" | "down";

/** One named part of a readiness answer. The name is public: no host, no address. */
export type HealthCheck = {
  readonly name: string;
  check(): Promise<HealthState>;
};

/** All parts and their sum: `down` when any is, else `degraded` when any is. */
export type HealthReport = {
  readonly status: HealthState;
  readonly checks: readonly { readonly name: string; readonly status: HealthState }[];
};

/** A check that has not answered by then counts as down: a prober's own patience is seldom longer. */
const CHECK_TIMEOUT_MS = 2_000;

const WORST_FIRST: readonly HealthState[] = ["down", "degraded", "ok"];

/**
 * Runs all checks at once, each for at most two seconds. A check that throws or hangs is `down`; checks of one name are
 * one, as bad as the worst of them; this never throws.
 */
export async function runHealthChecks(
  checks: readonly HealthCheck[],
  timeoutMs: number = CHECK_TIMEOUT_MS,
): Promise<HealthReport> {
  const results = await Promise.all(
    checks.map(async (check) => ({ name: check.name, status: await runBounded(check, timeoutMs) })),
  );
  const names = [...new Set(results.map((result) => result.name))];
  const merged = names.map((name) => ({
    name,
    status: worstOf(results.filter((result) => result.name === name).map((result) => result.status)),
  }));
  return { status: worstOf(merged.map((result) => result.status)), checks: merged };
}

function worstOf(states: readonly HealthState[]): HealthState {
  return WORST_FIRST.find((state) => states.includes(state)) ?? "ok";
}

async function runBounded(check: HealthCheck, timeoutMs: number): Promise<HealthState> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<HealthState>((resolve) => {
    timer = setTimeout(() => resolve("down"), timeoutMs);
  });
  try {
    return await Promise.race([check.check(), timeout]);
  } catch {
    return "down";
  } finally {
    clearTimeout(timer);
  }
}
