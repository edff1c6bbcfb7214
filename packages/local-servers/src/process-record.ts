import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describeProcess, isSameProcess } from "./process-description.ts";
import type { StopStep } from "./running-server.ts";

/** A child on disk, so that the next start finds what a killed parent left running. */
export type ProcessRecord = {
  readonly name: string;
  readonly pid: number;
  readonly startId: string;
  readonly owner: { readonly pid: number; readonly startId: string };
};

/** NONE: nothing runs. STOPPED: a leftover of a dead owner was ended. OWNED: its owner lives, nothing was touched. */
export type LeftoverOutcome = "NONE" | "STOPPED" | "OWNED";

/** Writes the record of a child of this process (mode 0600, replaced in one step). A child that is gone leaves no file. */
export function recordProcess(file: string, name: string, pid: number): void {
  const child = describeProcess(pid);
  const owner = describeProcess(process.pid);
  if (child === null || owner === null) return removeProcessRecord(file);
  const record: ProcessRecord = {
    name,
    pid,
    startId: child.startId,
    owner: { pid: process.pid, startId: owner.startId },
  };
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The record in `file`, or null when it is absent or not one of ours. */
export function readProcessRecord(file: string): ProcessRecord | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return null;
  }
  return isProcessRecord(parsed) ? parsed : null;
}

/** Removes the record; an absent one is fine. */
export function removeProcessRecord(file: string): void {
  rmSync(file, { force: true });
}

/**
 * Ends the recorded process when it still is that process and its owner is dead; a pid that another program has by now
 * is left alone. The record goes unless the owner lives.
 */
export async function stopLeftover(file: string, steps: readonly StopStep[]): Promise<LeftoverOutcome> {
  const record = readProcessRecord(file);
  if (record === null) return "NONE";
  if (!isSameProcess(record.pid, record.startId)) {
    removeProcessRecord(file);
    return "NONE";
  }
  const { owner } = record;
  if (isSameProcess(owner.pid, owner.startId)) return "OWNED";
  await stopPid(record.pid, record.startId, steps);
  removeProcessRecord(file);
  return "STOPPED";
}

/** Sends each step's signal in turn until the process is gone; looks every 20 ms. Not only for children. */
export async function stopPid(pid: number, startId: string, steps: readonly StopStep[]): Promise<void> {
  for (const { signal, waitMs } of steps) {
    if (!isSameProcess(pid, startId)) return;
    try {
      process.kill(pid, signal);
    } catch {
      return;
    }
    const deadline = performance.now() + waitMs;
    while (performance.now() < deadline) {
      if (!isSameProcess(pid, startId)) return;
      await delay(20);
    }
  }
}

function isProcessRecord(value: unknown): value is ProcessRecord {
  if (typeof value !== "object" || value === null) return false;
  if (!("name" in value && "pid" in value && "startId" in value && "owner" in value)) return false;
  const { owner } = value;
  if (typeof owner !== "object" || owner === null || !("pid" in owner && "startId" in owner)) return false;
  return (
    typeof value.name === "string" &&
    typeof value.pid === "number" &&
    typeof value.startId === "string" &&
    typeof owner.pid === "number" &&
    typeof owner.startId === "string"
  );
}
