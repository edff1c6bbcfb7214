import type { IncomingMessage, ServerResponse } from "node:http";
import type { ExchangeLog, OpenExchange } from "./exchange-log.ts";
import type { FaultTable, S3Fault } from "./faults.ts";
import { operationOf, performOperation } from "./perform-operation.ts";
import { refusalDocument, type S3Answer } from "./s3-answer.ts";
import type { S3Call, S3Context } from "./s3-context.ts";
import { refuse, type S3Refusal, type S3Result } from "./s3-refusal.ts";
import { parseS3Request, type S3Request } from "./s3-request.ts";
import { type Breakage, sendAnswer } from "./send-answer.ts";
import { type S3Key, verifySignature } from "./verify-signature.ts";

/** What serving takes. */
export type Serving = {
  readonly context: S3Context;
  readonly key: S3Key;
  readonly faults: FaultTable;
  readonly log: ExchangeLog;
};

/** Thrown to cut the connection of a request. */
class Cut extends Error {}

/** Serves one request from its head to its end: signature, fault, operation, answer, log. */
export async function serveExchange(
  serving: Serving,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { context, log } = serving;
  // A request whose body was left half read has no socket any more.
  const { socket } = incoming;
  const request = parseS3Request(incoming, context.bucket);
  if (request === null) {
    const { refusal } = refuse("InvalidURI");
    await sendAnswer(toErrorAnswer(context, refusal, "0", incoming.url ?? ""), response, () => undefined);
    return;
  }
  const exchange = log.open(request, operationOf(request), {
    arrivedAt: new Date(context.nowMs()),
    remoteAddress: socket.remoteAddress ?? "-",
    httpVersion: incoming.httpVersion,
  });
  const startedAt = performance.now();
  try {
    await serveRequest(serving, request, exchange, incoming, response);
  } catch (error) {
    // Cut on purpose, or the other side hung up: either way the connection is of no more use.
    socket.destroy();
    // A bug of the stand-in's own must not pass for a service that hangs up.
    if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) throw error;
  } finally {
    log.close(exchange, Math.round(performance.now() - startedAt));
  }
}

async function serveRequest(
  { context, key, faults, log }: Serving,
  request: S3Request,
  exchange: OpenExchange,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const verified = verifySignature(request, key, context.nowMs());
  if (!verified.ok) {
    await send(context, exchange, verified, response, undefined);
    return;
  }
  exchange.signed = verified.value.from;
  const fault = faults.take(exchange.operation, request.key);
  const call: S3Call = {
    request,
    payloadHash: verified.value.payloadHash,
    body: () => readBody(log, request, exchange, incoming, response, fault),
  };
  if (fault?.kind === "CUT_BEFORE_HEAD") throw new Cut();
  if (fault?.kind === "HANG") await hang(call, response);
  if (fault?.kind === "DELAY") await waitUntil(fault.until);
  const result = await decide(fault, exchange, context, call);
  if (fault?.kind === "LOSE_ANSWER" || fault?.kind === "CUT_REQUEST") throw new Cut();
  await send(context, exchange, result, response, fault);
}

async function decide(
  fault: S3Fault | undefined,
  exchange: OpenExchange,
  context: S3Context,
  call: S3Call,
): Promise<S3Result<S3Answer>> {
  if (fault?.kind === "STATUS") return { ok: false, refusal: toRefusal(fault) };
  if (fault?.kind === "ERROR_IN_OK") {
    return { ok: false, refusal: toRefusal({ ...fault, kind: "STATUS", status: 200 }) };
  }
  if (fault?.kind === "CUT_REQUEST") {
    for await (const chunk of call.body()) void chunk;
    throw new Cut();
  }
  return performOperation(exchange.operation, context, call);
}

/** The body's chunks, counted; a waiting sender is told to go on. */
async function* readBody(
  log: ExchangeLog,
  request: S3Request,
  exchange: OpenExchange,
  incoming: IncomingMessage,
  response: ServerResponse,
  fault: S3Fault | undefined,
): AsyncGenerator<Buffer> {
  if (request.headers.get("expect") === "100-continue") response.writeContinue();
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    log.received(exchange, chunk.length);
    if (fault?.kind === "CUT_REQUEST" && exchange.bytesReceived >= fault.afterBytes) throw new Cut();
    yield chunk;
  }
}

async function send(
  context: S3Context,
  exchange: OpenExchange,
  result: S3Result<S3Answer>,
  response: ServerResponse,
  fault: S3Fault | undefined,
): Promise<void> {
  const { requestId, target } = exchange;
  const answer = result.ok ? result.value : toErrorAnswer(context, result.refusal, requestId, target);
  const own =
    context.dialect === "OSS"
      ? { server: "AliyunOSS", "x-oss-request-id": requestId }
      : { server: "AmazonS3", "x-amz-request-id": requestId, "x-amz-id-2": "aG9zdC1pZA==" };
  // A sender that was never told to go on may keep its body: the connection can't be used again.
  const close = exchange.headers["expect"] !== undefined && exchange.bytesReceived === 0 ? { connection: "close" } : {};
  const headers = { ...answer.headers, ...own, ...close };
  exchange.status = answer.status;
  exchange.code = result.ok ? null : result.refusal.code;
  exchange.responseHeaders = headers;
  exchange.objectBytes = answer.objectBytes ?? null;
  const body = fault?.kind === "TRUNCATE_XML" ? truncate(answer.body) : answer.body;
  const onSent = (bytes: number): void => {
    if (exchange.method !== "HEAD") exchange.bytesSent += bytes;
  };
  await sendAnswer({ ...answer, headers, body }, response, onSent, breakageOf(fault));
  if (fault?.kind === "STALL_ANSWER") await new Promise((resolve) => response.once("close", resolve));
}

function toErrorAnswer({ dialect }: S3Context, refusal: S3Refusal, requestId: string, target: string): S3Answer {
  const resource = target.split("?")[0] ?? "/";
  const ec = dialect === "OSS" ? { "x-oss-ec": refusal.ec ?? "0000-00000000" } : {};
  const text = refusalDocument(refusal, dialect, requestId, resource);
  const headers = { "content-type": "application/xml", ...refusal.headers, ...ec };
  return { status: refusal.status, headers, body: { kind: "TEXT", text } };
}

function toRefusal(fault: S3Fault & { readonly kind: "STATUS" }): S3Refusal {
  const { status, code, message = "injected", retryAfterSeconds } = fault;
  const headers = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  return { status, code, message, details: {}, headers };
}

function truncate(body: S3Answer["body"]): S3Answer["body"] {
  return body.kind === "TEXT" ? { kind: "TEXT", text: body.text.slice(0, Math.floor(body.text.length / 2)) } : body;
}

function breakageOf(fault: S3Fault | undefined): Breakage | undefined {
  if (fault?.kind === "CUT_ANSWER") return { how: "CUT", afterBytes: fault.afterBytes };
  if (fault?.kind === "STALL_ANSWER") return { how: "STALL", afterBytes: fault.afterBytes };
  return undefined;
}

/** Takes the body in, then waits until the other side, or the server's end, closes the connection. */
async function hang(call: S3Call, response: ServerResponse): Promise<never> {
  const closed = new Promise<void>((resolve) => response.once("close", resolve));
  for await (const chunk of call.body()) void chunk;
  await closed;
  throw new Cut();
}

async function waitUntil(until: Promise<unknown> | number): Promise<void> {
  if (typeof until === "number") await new Promise((resolve) => setTimeout(resolve, until));
  else await Promise.allSettled([until]);
}
