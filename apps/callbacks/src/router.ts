import { router } from "./context.ts";
import { deleteEndpoint } from "./procedures/delete-endpoint.ts";
import { getEndpoint } from "./procedures/get-endpoint.ts";
import { getEvent } from "./procedures/get-event.ts";
import { listEndpoints } from "./procedures/list-endpoints.ts";
import { listEvents } from "./procedures/list-events.ts";
import { patchEndpoint } from "./procedures/patch-endpoint.ts";
import { registerEndpoint } from "./procedures/register-endpoint.ts";

/** What other services may ask of callbacks. */
export const callbacksRouter = router({
  registerEndpoint,
  listEndpoints,
  getEndpoint,
  patchEndpoint,
  deleteEndpoint,
  listEvents,
  getEvent,
});

/** The router's type, for clients. */
export type CallbacksRouter = typeof callbacksRouter;
