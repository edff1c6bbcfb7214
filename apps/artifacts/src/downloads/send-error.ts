import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { FAILURES, type LocalCode, localFailure, toErrorEnvelope } from "@keble-scraper/contract";

/** Answers with the one error envelope. `message` replaces the table's text. */
export function sendError(
  response: ServerResponse,
  requestId: string,
  code: LocalCode,
  headers: OutgoingHttpHeaders = {},
  message?: string,
): void {
  const failure = localFailure(code, message === undefined ? {} : { message });
  const body = Buffer.from(JSON.stringify(toErrorEnvelope(failure, { requestId })));
  response.writeHead(FAILURES.LOCAL[code].httpStatus, {
    "cache-control": "no-store",
    "content-length": body.byteLength,
    "content-type": "application/json",
    ...headers,
  });
  // Node sends no body in answer to HEAD.
  response.end(body);
}
