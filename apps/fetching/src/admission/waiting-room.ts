/** The seats of jobs that wait inside a worker: at most half of its slots, one at least. */
export type WaitingRoom = {
  /** Takes a seat when there is one. Returns how to leave it (any number of times), or undefined. */
  enter(): (() => void) | undefined;
  /** Takes a seat in any case: an attempt that has begun may not go back. */
  squeezeIn(): () => void;
  readonly waiting: number;
};

/** `slots`: the runs of the worker side by side. */
export function createWaitingRoom(slots: number): WaitingRoom {
  const seats = Math.max(1, Math.floor(slots / 2));
  let waiting = 0;

  function squeezeIn(): () => void {
    waiting += 1;
    let isIn = true;
    return () => {
      if (isIn) waiting -= 1;
      isIn = false;
    };
  }

  return {
    enter: () => (waiting < seats ? squeezeIn() : undefined),
    squeezeIn,
    get waiting() {
      return waiting;
    },
  };
}
