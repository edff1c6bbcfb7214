import type { inferRouterOutputs } from "@trpc/server";
import type { z } from "zod";
import type { ApiRouter } from "../router.ts";

/** The name of a public procedure. */
export type ProcedureName = keyof inferRouterOutputs<ApiRouter>;

/** What a REST route answers with: a status, headers beside the common ones, and JSON (absent: no body). */
export type RestAnswer = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
};

/** A REST route: how an operation looks over HTTP. What it does is its procedure's. */
export type RestRoute = {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Parameters are ids, written as `{id}`, ways out, `{route}`, and owners of pins, `{owner}`. */
  readonly path: string;
  readonly procedure: ProcedureName;
  readonly summary: string;
  readonly query?: z.ZodObject;
  /** Absent: no body is needed, and only an empty object is taken. */
  readonly body?: z.ZodType;
  /** Set where no body means an empty one. */
  readonly bodyIs?: "OPTIONAL";
  /** Absent: 256 KiB. */
  readonly bodyBytesMax?: number;
  /** Request headers that become fields of the procedure's input. */
  readonly takes?: readonly ("idempotency-key" | "prefer")[];
  /** Set where a key for the whole request would promise what is not kept: its items have keys of their own. */
  readonly keyed?: "ITEMS";
  /** What may be answered, by status; null: no body. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  readonly answer: (output: unknown) => RestAnswer;
};

/** Declares a route, with `answer` checked against what its procedure gives. */
export function defineRoute<N extends ProcedureName>(
  route: Omit<RestRoute, "procedure" | "answer"> & {
    readonly procedure: N;
    readonly answer: (output: inferRouterOutputs<ApiRouter>[N]) => RestAnswer;
  },
): RestRoute {
  return { ...route, answer: route.answer as RestRoute["answer"] };
}
