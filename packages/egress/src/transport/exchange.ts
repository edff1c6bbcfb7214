import type { Dispatcher } from "undici";
import { type BodyFeed, createBodyFeed } from "./body-feed.ts";
import { type BodyStage, EnoughRead, StageFailure } from "./body-stage.ts";
import { classifyError, codeOf, type ErrorStage, isAssertion } from "./classify-error.ts";
import { type Connection, ConnectionGone } from "./connection.ts";
import { type EgressLimits, headCeilingBytes } from "./egress-limits.ts";
import type { FailureKind } from "./failure-kind.ts";
import { readResponseHead, type ResponseHead } from "./response-head.ts";
import type { Stop } from "./stop.ts";

/** One request on one connection. `target` is path and query. */
export type ExchangeRequest = {
  readonly method: "GET" | "HEAD" | "POST";
  readonly target: string;
  /** Flat list of names and values; Host is in it. */
  readonly headers: readonly string[];
  readonly body?: string;
};

/**
 * What to do with a response once its head is known. `READ`: feed the body into `stage`, at most `wireBytesMax` coded
 * bytes and `ceilingBytes` on the socket; after `enoughAfterMs` (absent: never) the rest is not waited for. `SKIP`: the head is all that is wanted; a body is not read.
 */
export type HeadVerdict =
  | {
      readonly do: "READ";
      readonly stage: BodyStage;
      readonly wireBytesMax: number;
      readonly ceilingBytes: number;
      readonly enoughAfterMs?: number;
    }
  | { readonly do: "SKIP" }
  | { readonly do: "FAIL"; readonly kind: FailureKind };

/**
 * How an exchange ended. `NOT_SENT`: the connection was gone before a byte of the request went out. `isReusable`: the
 * response ended cleanly and the connection may rest in a pool; in every other case it was destroyed.
 */
export type ExchangeResult =
  | { readonly kind: "DONE"; readonly head: ResponseHead; readonly isReusable: boolean }
  | { readonly kind: "FAILED"; readonly failure: FailureKind; readonly nativeCode: string | null }
  | { readonly kind: "STOPPED" }
  | { readonly kind: "NOT_SENT" };

/** What an exchange counts as it goes, readable at any moment by whoever ends it. */
export type ExchangeProgress = {
  sent: boolean;
  head: ResponseHead | null;
  /** Coded body bytes. */
  wireBytes: number;
};

/**
 * Sends a request and reads its response, within the limits and until `stop`. Never dials, never retries. Rejects only
 * with faults: those of the sink, and mistakes of ours.
 */
export function exchange(options: {
  readonly connection: Connection;
  readonly request: ExchangeRequest;
  readonly limits: EgressLimits;
  readonly stop: Stop;
  readonly progress: ExchangeProgress;
  readonly onHead: (head: ResponseHead) => HeadVerdict;
}): Promise<ExchangeResult> {
  const { connection, request, limits, stop, progress, onHead } = options;
  return new Promise((resolve, reject) => {
    let isSettled = false;
    let isBegun = false;
    let informational = 0;
    let verdict: HeadVerdict | null = null;
    let feed: BodyFeed | null = null;
    let timer: NodeJS.Timeout | undefined;
    let offStop = (): void => {};

    const settle = (): boolean => {
      if (isSettled) return false;
      isSettled = true;
      clearTimeout(timer);
      feed?.stop();
      offStop();
      return true;
    };
    const discard = (): void => {
      connection.destroy();
      if (verdict?.do === "READ") verdict.stage.abandon();
    };
    const finish = (result: ExchangeResult): void => {
      if (!settle()) return;
      if (result.kind !== "DONE" || !result.isReusable) discard();
      resolve(result);
    };
    const fail = (failure: FailureKind, nativeCode: string | null = null): void => {
      finish({ kind: "FAILED", failure, nativeCode });
    };
    const fault = (error: unknown): void => {
      if (!settle()) return;
      discard();
      reject(error instanceof Error ? error : new Error(String(error)));
    };
    const onStageError = (error: unknown): void => {
      if (error instanceof StageFailure) fail(error.kind, error.nativeCode);
      else if (error instanceof EnoughRead && progress.head !== null) {
        finish({ kind: "DONE", head: progress.head, isReusable: false });
      } else fault(error);
    };
    const stage = (): ErrorStage =>
      progress.head === null ? "HEAD" : progress.head.mayHaveBody && verdict?.do === "READ" ? "BODY" : "NO_BODY";
    const isReusable = (): boolean => request.method !== "HEAD" && informational === 0;

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(controller) {
        // The last moment before the bytes go out: what came in on a resting connection would be taken for our answer.
        if (!connection.isQuiet) {
          finish({ kind: "NOT_SENT" });
          controller.abort(new Error("unasked bytes"));
          return;
        }
        connection.begin(headCeilingBytes(limits), {
          onCeiling() {
            fail(progress.head === null ? "HEADERS_TOO_LARGE" : "BODY_TOO_LARGE");
          },
        });
        isBegun = true;
        progress.sent = true;
        timer = setTimeout(() => {
          fail("HEADERS_TIMEOUT");
        }, limits.responseTimeoutMs);
      },
      onResponseStart(controller, httpStatus) {
        if (isSettled) return;
        const raw = Array.isArray(controller.rawHeaders) ? controller.rawHeaders : [];
        if (raw.length / 2 > limits.headerLinesMax) {
          fail("HEADERS_TOO_LARGE");
          return;
        }
        if (httpStatus < 200) {
          informational += 1;
          if (informational > limits.informationalMax) fail("HTTP_PROTOCOL");
          return;
        }
        clearTimeout(timer);
        const head = readResponseHead(httpStatus, raw, request.method);
        progress.head = head;
        verdict = onHead(head);
        if (verdict.do === "FAIL") {
          fail(verdict.kind);
        } else if (verdict.do === "READ") {
          feed = createBodyFeed(verdict.stage, connection, limits.bodyIdleTimeoutMs, {
            onDone() {
              finish({ kind: "DONE", head, isReusable: isReusable() && connection.isOpen });
            },
            onIdle() {
              fail("BODY_IDLE_TIMEOUT");
            },
            onError: onStageError,
          });
          if (verdict.enoughAfterMs !== undefined) {
            timer = setTimeout(() => {
              finish({ kind: "DONE", head, isReusable: false });
            }, verdict.enoughAfterMs);
          }
          connection.allow(verdict.ceilingBytes);
        } else if (head.mayHaveBody && head.declaredBytes !== 0) {
          finish({ kind: "DONE", head, isReusable: false });
        }
      },
      onResponseData(_controller, chunk) {
        // A body without framing yields empty chunks.
        if (isSettled || verdict?.do !== "READ" || chunk.length === 0) return;
        progress.wireBytes += chunk.length;
        if (progress.wireBytes > verdict.wireBytesMax) fail("BODY_TOO_LARGE");
        else feed?.add(chunk);
      },
      onResponseEnd() {
        if (isSettled || progress.head === null) return;
        connection.rest();
        if (feed === null) finish({ kind: "DONE", head: progress.head, isReusable: isReusable() });
        else feed.end();
      },
      onResponseError(_controller, error) {
        if (isSettled) return;
        if (!isBegun) {
          const isLost = error instanceof ConnectionGone || classifyError(error, "HEAD") !== "FAULT";
          // No response is being read yet, so an assertion is no answer of the origin's.
          if (isLost && !isAssertion(error)) finish({ kind: "NOT_SENT" });
          else fault(error);
          return;
        }
        const meaning = classifyError(error, stage());
        if (meaning === "FAULT") fault(error);
        else if (meaning !== "HARMLESS") fail(meaning, codeOf(error));
        else if (progress.head !== null) finish({ kind: "DONE", head: progress.head, isReusable: false });
      },
    };

    if (stop.reason !== null) {
      finish({ kind: "STOPPED" });
      return;
    }
    offStop = stop.onStop(() => {
      finish({ kind: "STOPPED" });
    });
    try {
      connection.dispatch(
        { path: request.target, method: request.method, headers: [...request.headers], body: request.body ?? null },
        handler,
      );
    } catch (error) {
      fault(error);
    }
  });
}
