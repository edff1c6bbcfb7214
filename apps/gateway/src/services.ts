import type {
  CancelJobCall,
  CheckJobAnswer,
  CheckJobCall,
  CreateDownloadAnswer,
  CreateDownloadCall,
  DeleteEndpointAnswer,
  DeleteEndpointCall,
  DeleteJobAnswer,
  DeleteJobCall,
  EndpointAnswer,
  GetArtifactAnswer,
  GetArtifactCall,
  GetEndpointCall,
  GetEventAnswer,
  GetEventCall,
  GetJobCall,
  GetRouteInfosAnswer,
  GetRouteInfosCall,
  GetStatsAnswer,
  GetStatsCall,
  GetUsageAnswer,
  GetUsageCall,
  JobAnswer,
  ListAttemptsAnswer,
  ListAttemptsCall,
  ListBudgetsAnswer,
  ListBudgetsCall,
  ListEndpointsAnswer,
  ListEndpointsCall,
  ListEventsAnswer,
  ListEventsCall,
  ListJobsAnswer,
  ListJobsCall,
  ListPinsAnswer,
  ListPinsCall,
  PatchEndpointCall,
  PutPinAnswer,
  PutPinCall,
  QuarantineRouteCall,
  RegisterEndpointAnswer,
  RegisterEndpointCall,
  ReleaseRouteCall,
  RouteInfoAnswer,
  SubmitBatchAnswer,
  SubmitBatchCall,
  SubmitJobAnswer,
  SubmitJobCall,
} from "@keble-scraper/contract";
import type { ArtifactsRouter } from "@keble-scraper/artifacts/router";
import type { CallbacksRouter } from "@keble-scraper/callbacks/router";
import type { FetchingRouter } from "@keble-scraper/fetching/router";
import type { IntakeRouter } from "@keble-scraper/intake/router";
import type { RetentionRouter } from "@keble-scraper/retention/router";
import { createInternalClient } from "@keble-scraper/service";
import type { AnyRouter } from "@trpc/server";
import type { GatewaySettings } from "./settings.ts";

/** What goes with a call to a service: the request it is for, its latest moment (epoch ms), and the caller's leaving. */
export type CallOptions = {
  readonly context: { readonly requestId: string; readonly deadlineAt: number };
  readonly signal?: AbortSignal;
};

type Query<I, O> = { query(input: I, options: CallOptions): Promise<O> };
type Mutation<I, O> = { mutate(input: I, options: CallOptions): Promise<O> };

/** What the gateway asks of intake. */
export type IntakeCalls = {
  readonly submitJob: Mutation<SubmitJobCall, SubmitJobAnswer>;
  readonly submitBatch: Mutation<SubmitBatchCall, SubmitBatchAnswer>;
  readonly checkJob: Query<CheckJobCall, CheckJobAnswer>;
  readonly getJob: Query<GetJobCall, JobAnswer>;
  readonly listJobs: Query<ListJobsCall, ListJobsAnswer>;
  readonly listAttempts: Query<ListAttemptsCall, ListAttemptsAnswer>;
  readonly cancelJob: Mutation<CancelJobCall, JobAnswer>;
  readonly deleteJob: Mutation<DeleteJobCall, DeleteJobAnswer>;
};

/** What the gateway asks of artifacts. */
export type ArtifactsCalls = {
  readonly getArtifact: Query<GetArtifactCall, GetArtifactAnswer>;
  readonly createDownload: Mutation<CreateDownloadCall, CreateDownloadAnswer>;
  readonly putPin: Mutation<PutPinCall, PutPinAnswer>;
  readonly listPins: Query<ListPinsCall, ListPinsAnswer>;
};

/** What the gateway asks of callbacks. */
export type CallbacksCalls = {
  readonly registerEndpoint: Mutation<RegisterEndpointCall, RegisterEndpointAnswer>;
  readonly listEndpoints: Query<ListEndpointsCall, ListEndpointsAnswer>;
  readonly getEndpoint: Query<GetEndpointCall, EndpointAnswer>;
  readonly patchEndpoint: Mutation<PatchEndpointCall, EndpointAnswer>;
  readonly deleteEndpoint: Mutation<DeleteEndpointCall, DeleteEndpointAnswer>;
  readonly listEvents: Query<ListEventsCall, ListEventsAnswer>;
  readonly getEvent: Query<GetEventCall, GetEventAnswer>;
};

/** What the gateway asks of fetching. */
export type FetchingCalls = {
  readonly getRouteInfos: Query<GetRouteInfosCall, GetRouteInfosAnswer>;
  readonly quarantineRoute: Mutation<QuarantineRouteCall, RouteInfoAnswer>;
  readonly releaseRoute: Mutation<ReleaseRouteCall, RouteInfoAnswer>;
  readonly listBudgets: Query<ListBudgetsCall, ListBudgetsAnswer>;
  readonly getUsage: Query<GetUsageCall, GetUsageAnswer>;
};

/** What the gateway asks of retention. */
export type RetentionCalls = {
  readonly getStats: Query<GetStatsCall, GetStatsAnswer>;
};

/** The services behind the gateway. */
export type Services = {
  readonly intake: IntakeCalls;
  /**
   * Asks intake for a job, as soon as it is terminal or as it is when the wait is over. A wait has connections of its own,
   * so that it holds up no call that does not wait; when all of them are taken, and after `endWaits`, intake is asked
   * without waiting.
   */
  readonly awaitJob: (
    job: Pick<GetJobCall, "principal" | "id">,
    waitSeconds: number | undefined,
    options: (waitSeconds?: number) => CallOptions,
  ) => Promise<JobAnswer>;
  readonly artifacts: ArtifactsCalls;
  readonly callbacks: CallbacksCalls;
  readonly fetching: FetchingCalls;
  readonly retention: RetentionCalls;
};

/** The longest call: a wait of 60 s and 5 s to answer it. */
const CALL_MS_MAX = 65_000;
/** A client holds 64 connections, one call each. Waits are dealt out evenly, so that none waits for a connection. */
const WAITING_CLIENTS = 8;
const WAITS_MAX = WAITING_CLIENTS * 60;

/** The services, opened. */
export type OpenServices = Services & {
  /** Ends all waits: each asks for its job's current state and answers with it. */
  endWaits(): void;
  close(): Promise<void>;
};

/** Clients of the services behind the gateway. Nothing is connected before the first call. */
export function openServices(settings: GatewaySettings["internal"]): OpenServices {
  const open = <R extends AnyRouter>(part: "intake" | "artifacts" | "callbacks" | "fetching" | "retention") =>
    createInternalClient<R>({
      url: settings.urls[part],
      serviceToken: settings.serviceToken,
      timeoutMs: CALL_MS_MAX,
      part,
    });
  const intake = open<IntakeRouter>("intake");
  const artifacts = open<ArtifactsRouter>("artifacts");
  const callbacks = open<CallbacksRouter>("callbacks");
  const fetching = open<FetchingRouter>("fetching");
  const retention = open<RetentionRouter>("retention");
  const waiting = Array.from({ length: WAITING_CLIENTS }, () => open<IntakeRouter>("intake"));
  const waits = waiting.map(() => 0);
  const ends = new Set<AbortController>();
  let isEnding = false;
  return {
    intake: intake.client,
    async awaitJob(job, waitSeconds, options) {
      const least = waits.indexOf(Math.min(...waits));
      const client = waiting[least]?.client;
      if (waitSeconds === undefined || client === undefined || isEnding || sum(waits) >= WAITS_MAX) {
        return intake.client.getJob.query(job, options());
      }
      const end = new AbortController();
      ends.add(end);
      waits[least] = (waits[least] ?? 0) + 1;
      try {
        const { context, signal } = options(waitSeconds);
        const either = signal === undefined ? end.signal : AbortSignal.any([signal, end.signal]);
        return await client.getJob.query({ ...job, waitSeconds }, { context, signal: either });
      } catch (error) {
        if (!end.signal.aborted) throw error;
        return await intake.client.getJob.query(job, options());
      } finally {
        waits[least] = (waits[least] ?? 1) - 1;
        ends.delete(end);
      }
    },
    endWaits() {
      isEnding = true;
      for (const end of ends) end.abort();
    },
    artifacts: artifacts.client,
    callbacks: callbacks.client,
    fetching: fetching.client,
    retention: retention.client,
    async close() {
      await Promise.all(
        [intake, artifacts, callbacks, fetching, retention, ...waiting].map((client) => client.close()),
      );
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
