import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const NAMES = ["redis-server", "valkey-server"] as const;

/** The first `redis-server`, else the first `valkey-server`, in the folders of a PATH value; null when there is none. */
export function findRedisBinary(path: string): string | null {
  for (const name of NAMES) {
    for (const folder of path.split(delimiter)) {
      if (folder !== "" && isExecutable(join(folder, name))) return join(folder, name);
    }
  }
  return null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
