import type { BinaryStore } from "./binary-store.ts";
import {
  checkMark,
  checkNamespace,
  type FenceReason,
  type FenceRefusal,
  type StoredNamespace,
} from "./namespace-check.ts";

/**
 * The store is not the one that the database's artifacts are in, or nobody has claimed it: this process must not start.
 * The message says what differs and what to do, and holds no secret.
 */
export class FenceRefused extends Error {
  override readonly name = "FenceRefused";
  readonly reason: FenceReason;

  constructor(refusal: FenceRefusal) {
    super(refusal.text);
    this.reason = refusal.reason;
  }
}

/** A part of a container that is over once it has started. */
export type Fence = {
  readonly name: string;
  start(signal: AbortSignal): Promise<void>;
  stop(deadline: number): Promise<void>;
};

/**
 * Stands behind database and store, in front of all that uses both. Its start throws `FenceRefused` unless the
 * database's row, the settings and the store's own mark name the same place, owner and claim; `StoreUnavailable` when the
 * store can't be asked. It only compares: nothing is claimed, mended or written.
 */
export function createFence(of: {
  readonly store: Pick<BinaryStore, "identity" | "readOwner">;
  /** The owner that the settings name. */
  readonly owner: string;
  findNamespace(): Promise<StoredNamespace | null>;
  /** Whether the database holds any artifact; asked only when there is no row. */
  hasRows(): Promise<boolean>;
}): Fence {
  return {
    name: "artifact fence",
    async start() {
      const row = await of.findNamespace();
      const hasRows = row === null && (await of.hasRows());
      refuse(checkNamespace({ identity: of.store.identity(), owner: of.owner, row, hasRows }));
      if (row !== null) refuse(checkMark(row, await of.store.readOwner()));
    },
    async stop() {
      await Promise.resolve();
    },
  };
}

function refuse(refusal: FenceRefusal | null): void {
  if (refusal !== null) throw new FenceRefused(refusal);
}
