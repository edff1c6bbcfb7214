import { cancelJob } from "./procedures/cancel-job.ts";
import { checkJob } from "./procedures/check-job.ts";
import { createApiKey } from "./procedures/create-api-key.ts";
import { createDownload } from "./procedures/create-download.ts";
import { deleteCallbackEndpoint } from "./procedures/delete-callback-endpoint.ts";
import { deleteJob } from "./procedures/delete-job.ts";
import { downloadJobContent } from "./procedures/download-job-content.ts";
import { getArtifact } from "./procedures/get-artifact.ts";
import { getCallbackEndpoint } from "./procedures/get-callback-endpoint.ts";
import { getCallbackEvent } from "./procedures/get-callback-event.ts";
import { getJob } from "./procedures/get-job.ts";
import { getStats } from "./procedures/get-stats.ts";
import { getUsage } from "./procedures/get-usage.ts";
import { listApiKeys } from "./procedures/list-api-keys.ts";
import { listAttempts } from "./procedures/list-attempts.ts";
import { listAuditEvents } from "./procedures/list-audit-events.ts";
import { listBudgets } from "./procedures/list-budgets.ts";
import { listCallbackEndpoints } from "./procedures/list-callback-endpoints.ts";
import { listCallbackEvents } from "./procedures/list-callback-events.ts";
import { listJobs } from "./procedures/list-jobs.ts";
import { listPins } from "./procedures/list-pins.ts";
import { listRoutes } from "./procedures/list-routes.ts";
import { patchCallbackEndpoint } from "./procedures/patch-callback-endpoint.ts";
import { putPin } from "./procedures/put-pin.ts";
import { quarantineRoute } from "./procedures/quarantine-route.ts";
import { registerCallbackEndpoint } from "./procedures/register-callback-endpoint.ts";
import { releaseRoute } from "./procedures/release-route.ts";
import { revokeApiKey } from "./procedures/revoke-api-key.ts";
import { submitBatch } from "./procedures/submit-batch.ts";
import { submitJob } from "./procedures/submit-job.ts";
import { publicRouter } from "./public-trpc.ts";

/** The public router: one procedure per operation. REST calls the same ones. */
export const apiRouter = publicRouter({
  submitJob,
  submitBatch,
  checkJob,
  getJob,
  listJobs,
  listAttempts,
  cancelJob,
  deleteJob,
  downloadJobContent,
  getArtifact,
  createDownload,
  putPin,
  listPins,
  registerCallbackEndpoint,
  listCallbackEndpoints,
  getCallbackEndpoint,
  patchCallbackEndpoint,
  deleteCallbackEndpoint,
  listCallbackEvents,
  getCallbackEvent,
  listRoutes,
  quarantineRoute,
  releaseRoute,
  listBudgets,
  getUsage,
  getStats,
  listAuditEvents,
  createApiKey,
  listApiKeys,
  revokeApiKey,
});
export type ApiRouter = typeof apiRouter;
