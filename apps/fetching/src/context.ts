import type { RouteState } from "@keble-scraper/contract";

/** What a procedure of fetching may use. */
export type FetchingContext = { readonly routes: readonly RouteState[] };
