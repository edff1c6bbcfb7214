import * as contract from "@keble-scraper/contract";
import { createInternalServer, createLogger, createProcedures, type InternalServer } from "@keble-scraper/service";

/** What a stand-in's procedure does with a call. What it returns is checked by the contract's own schema. */
export type Handler = (
  input: Record<string, unknown>,
  call: { signal: AbortSignal; requestId: string; deadlineAt: number },
) => unknown;

/** The services behind the gateway, at their real ports and with their real schemas; a test says what they answer. */
export type StandIns = AsyncDisposable & {
  readonly urls: { intake: string; artifacts: string; callbacks: string; fetching: string; retention: string };
  /** Calls so far, oldest first. */
  readonly calls: { procedure: string; input: Record<string, unknown>; requestId: string }[];
  on(procedure: string, handler: Handler): void;
  stop(): Promise<void>;
};

type Stand = { readonly answer: (procedure: string, input: unknown, call: Parameters<Handler>[1]) => Promise<unknown> };

const { router, procedure } = createProcedures<Stand>();

function mutation(
  name: string,
  input: Parameters<typeof procedure.input>[0],
  output: Parameters<typeof procedure.output>[0],
) {
  return procedure
    .input(input)
    .output(output)
    .mutation(({ ctx, input: value }) => ctx.answer(name, value, ctx));
}

function query(
  name: string,
  input: Parameters<typeof procedure.input>[0],
  output: Parameters<typeof procedure.output>[0],
) {
  return procedure
    .input(input)
    .output(output)
    .query(({ ctx, input: value }) => ctx.answer(name, value, ctx));
}

const routers = {
  intake: router({
    submitJob: mutation("submitJob", contract.SubmitJobCall, contract.SubmitJobAnswer),
    submitBatch: mutation("submitBatch", contract.SubmitBatchCall, contract.SubmitBatchAnswer),
    checkJob: query("checkJob", contract.CheckJobCall, contract.CheckJobAnswer),
    getJob: query("getJob", contract.GetJobCall, contract.JobAnswer),
    listJobs: query("listJobs", contract.ListJobsCall, contract.ListJobsAnswer),
    listAttempts: query("listAttempts", contract.ListAttemptsCall, contract.ListAttemptsAnswer),
    cancelJob: mutation("cancelJob", contract.CancelJobCall, contract.JobAnswer),
    deleteJob: mutation("deleteJob", contract.DeleteJobCall, contract.DeleteJobAnswer),
  }),
  artifacts: router({
    getArtifact: query("getArtifact", contract.GetArtifactCall, contract.GetArtifactAnswer),
    createDownload: mutation("createDownload", contract.CreateDownloadCall, contract.CreateDownloadAnswer),
    putPin: mutation("putPin", contract.PutPinCall, contract.PutPinAnswer),
    listPins: query("listPins", contract.ListPinsCall, contract.ListPinsAnswer),
  }),
  callbacks: router({
    registerEndpoint: mutation("registerEndpoint", contract.RegisterEndpointCall, contract.RegisterEndpointAnswer),
    listEndpoints: query("listEndpoints", contract.ListEndpointsCall, contract.ListEndpointsAnswer),
    getEndpoint: query("getEndpoint", contract.GetEndpointCall, contract.EndpointAnswer),
    patchEndpoint: mutation("patchEndpoint", contract.PatchEndpointCall, contract.EndpointAnswer),
    deleteEndpoint: mutation("deleteEndpoint", contract.DeleteEndpointCall, contract.DeleteEndpointAnswer),
    listEvents: query("listEvents", contract.ListEventsCall, contract.ListEventsAnswer),
    getEvent: query("getEvent", contract.GetEventCall, contract.GetEventAnswer),
  }),
  fetching: router({
    getRouteInfos: query("getRouteInfos", contract.GetRouteInfosCall, contract.GetRouteInfosAnswer),
    quarantineRoute: mutation("quarantineRoute", contract.QuarantineRouteCall, contract.RouteInfoAnswer),
    releaseRoute: mutation("releaseRoute", contract.ReleaseRouteCall, contract.RouteInfoAnswer),
    listBudgets: query("listBudgets", contract.ListBudgetsCall, contract.ListBudgetsAnswer),
    getUsage: query("getUsage", contract.GetUsageCall, contract.GetUsageAnswer),
  }),
  retention: router({
    getStats: query("getStats", contract.GetStatsCall, contract.GetStatsAnswer),
  }),
};

/** Starts the five services. A procedure without a handler answers NOT_FOUND. */
export async function startStandIns(serviceToken: string): Promise<StandIns> {
  const handlers = new Map<string, Handler>();
  const calls: StandIns["calls"] = [];
  const logger = createLogger({ name: "stand-in", level: "silent" });
  const answer: Stand["answer"] = async (name, input, call) => {
    calls.push({ procedure: name, input: input as Record<string, unknown>, requestId: call.requestId });
    const handler = handlers.get(name);
    return handler === undefined
      ? contract.failed(contract.localFailure("NOT_FOUND"))
      : handler(input as Record<string, unknown>, call);
  };
  const open = async (name: keyof typeof routers): Promise<InternalServer> => {
    const server = createInternalServer({
      name,
      port: 0,
      router: routers[name],
      context: { answer },
      serviceToken,
      checks: [],
      logger,
    });
    await server.start(new AbortController().signal);
    return server;
  };
  const [intake, artifacts, callbacks, fetching, retention] = await Promise.all([
    open("intake"),
    open("artifacts"),
    open("callbacks"),
    open("fetching"),
    open("retention"),
  ]);
  const stop = async () => {
    await Promise.all(
      [intake, artifacts, callbacks, fetching, retention].map((server) => server.stop(performance.now())),
    );
  };
  return {
    urls: {
      intake: intake.url,
      artifacts: artifacts.url,
      callbacks: callbacks.url,
      fetching: fetching.url,
      retention: retention.url,
    },
    calls,
    on(name, handler) {
      handlers.set(name, handler);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
