/**
 * A part with a life of its own. `start` succeeds or leaves nothing behind, and gives up when its signal aborts. `stop` is
 * idempotent, safe before `start`, and shares one promise in flight; `deadline` is on the `performance.now()` scale, in
 * milliseconds: until then work in flight may end by itself, after it the part ends it.
 */
export type Component = {
  readonly name: string;
  start(signal: AbortSignal): Promise<void>;
  stop(deadline: number): Promise<void>;
};
