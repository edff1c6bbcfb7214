import type { Clock } from "./clock.ts";

/** A signal that aborts when a parent does or a deadline passes, whichever is first. `dispose` frees its timer. */
export type Deadline = { readonly signal: AbortSignal; hasPassed(): boolean; dispose(): void };

/** The longest that a timer holds; a longer one would fire at once. */
const TIMER_MS_MAX = 2_147_483_647;

/** Starts counting down `remainingMs`; zero or less has passed already. */
export function createDeadline(remainingMs: number, clock: Clock, parent?: AbortSignal): Deadline {
  const controller = new AbortController();
  const endsAt = clock.monotonicMs() + remainingMs;
  const hasPassed = () => clock.monotonicMs() >= endsAt;
  const follow = () => controller.abort(parent?.reason);
  let timer: NodeJS.Timeout | undefined;
  if (parent?.aborted) {
    follow();
  } else if (remainingMs <= 0) {
    controller.abort(new Error("the deadline has passed"));
  } else {
    parent?.addEventListener("abort", follow, { once: true });
    timer = setTimeout(
      () => controller.abort(new Error("the deadline has passed")),
      Math.min(remainingMs, TIMER_MS_MAX),
    );
  }
  return {
    signal: controller.signal,
    hasPassed,
    dispose() {
      clearTimeout(timer);
      parent?.removeEventListener("abort", follow);
    },
  };
}
