import { router } from "./procedure.ts";
import { cancelJob } from "./procedures/cancel-job.ts";
import { checkJob } from "./procedures/check-job.ts";
import { deleteJob } from "./procedures/delete-job.ts";
import { getJob } from "./procedures/get-job.ts";
import { listAttempts } from "./procedures/list-attempts.ts";
import { listJobs } from "./procedures/list-jobs.ts";
import { submitBatch } from "./procedures/submit-batch.ts";
import { submitJob } from "./procedures/submit-job.ts";

/** Jobs: submit, read, wait, cancel, erase. */
export const intakeRouter = router({
  submitJob,
  submitBatch,
  checkJob,
  getJob,
  listJobs,
  listAttempts,
  cancelJob,
  deleteJob,
});

export type IntakeRouter = typeof intakeRouter;
