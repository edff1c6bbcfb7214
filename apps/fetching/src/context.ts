import type { RouteState } from "./route-states.ts";

/** What a procedure of fetching may use. */
export type FetchingContext = { readonly routes: readonly RouteState[] };
