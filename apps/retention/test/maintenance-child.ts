import { createMaintenanceWorker } from "../src/app.ts";
import { parseEnv } from "./deletion-rig.ts";

/**
 * A maintenance worker that kills itself, as SIGKILL does, when it reaches the named point. Its settings come as JSON. It
 * runs in a process of its own: nothing it holds is closed or told.
 */
const [env = "{}", point = ""] = process.argv.slice(2);
const worker = createMaintenanceWorker(parseEnv(JSON.parse(env) as Record<string, string>), {
  signals: {
    reach(reached) {
      if (reached === point) process.kill(process.pid, "SIGKILL");
    },
  },
});
await worker.start();
