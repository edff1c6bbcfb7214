import { setMaxListeners } from "node:events";
import type { PoolName } from "./pool-widths.ts";

/** The right to one request in flight. `release` gives it back once; a second call is a bug and throws. */
export type Permit = { readonly pool: PoolName; release(): void };

/** What a pool holds now. `free` plus permits held is always `width`; somebody waits only while `free` is 0. */
export type PoolUsage = { readonly width: number; readonly free: number; readonly waiting: number };

type Waiter = { grant: () => void; previous: Waiter | null; next: Waiter | null };

/**
 * A fixed number of permits, served first come, first served. A released permit goes to the longest waiter directly,
 * so a newcomer cannot overtake. It holds no timer and nothing that keeps a process alive.
 */
export class FifoPool {
  readonly #name: PoolName;
  readonly #width: number;
  #free: number;
  #waiting = 0;
  #first: Waiter | null = null;
  #last: Waiter | null = null;

  constructor(name: PoolName, width: number) {
    this.#name = name;
    this.#width = width;
    this.#free = width;
  }

  get usage(): PoolUsage {
    return { width: this.#width, free: this.#free, waiting: this.#waiting };
  }

  /** Resolves with a permit when it is this caller's turn. An abort before that leaves the queue and rejects with its reason. */
  acquire(signal?: AbortSignal): Promise<Permit> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve(this.#permit());
    }
    // The queue keeps promise resolvers, not the callers' functions: a resolver called by whoever releases resumes the
    // waiter in the waiter's own async context, and so on its own pool.
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        grant: () => {
          signal?.removeEventListener("abort", leave);
          resolve(this.#permit());
        },
        previous: null,
        next: null,
      };
      const leave = (): void => {
        this.#remove(waiter);
        reject(signal?.reason as Error);
      };
      if (signal !== undefined) {
        // One deadline over a whole fan-out is normal here; Node would warn of a leak from the eleventh waiter on.
        setMaxListeners(0, signal);
        signal.addEventListener("abort", leave, { once: true });
      }
      this.#append(waiter);
    });
  }

  #permit(): Permit {
    let held = true;
    return {
      pool: this.#name,
      release: () => {
        if (!held) throw new Error(`A permit of the ${this.#name} pool was released twice`);
        held = false;
        this.#giveBack();
      },
    };
  }

  #giveBack(): void {
    const next = this.#first;
    if (next === null) {
      this.#free += 1;
      return;
    }
    this.#remove(next);
    next.grant();
  }

  #append(waiter: Waiter): void {
    waiter.previous = this.#last;
    if (this.#last === null) this.#first = waiter;
    else this.#last.next = waiter;
    this.#last = waiter;
    this.#waiting += 1;
  }

  // A linked list, because a waiter may leave from the middle and a queue of thousands must stay cheap.
  #remove(waiter: Waiter): void {
    if (waiter.previous === null) this.#first = waiter.next;
    else waiter.previous.next = waiter.next;
    if (waiter.next === null) this.#last = waiter.previous;
    else waiter.next.previous = waiter.previous;
    this.#waiting -= 1;
  }
}
