import { writeStateFile } from "./state-directory.ts";

/** Keeps `processes.json` true: logical name to pid, of what runs now. */
export type ProcessList = { set(names: readonly string[], pid: number | null): void; clear(): void };

/** Writes the file on every change. */
export function createProcessList(file: string): ProcessList {
  const pids = new Map<string, number>();
  const write = () => writeStateFile(file, Object.fromEntries(pids));
  write();
  return {
    set(names, pid) {
      for (const name of names) {
        if (pid === null) pids.delete(name);
        else pids.set(name, pid);
      }
      write();
    },
    clear() {
      pids.clear();
      write();
    },
  };
}
