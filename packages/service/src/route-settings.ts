/** How fast and how wide a route may be, over all workers. Null means no limit. */
export type RouteRate = { readonly requestsPerSecond: number | null; readonly concurrency: number | null };

/** `priceMicros` null means the list price. Its unit is the route's own: a request, a gigabyte, a browser hour. */
export type RouteMoney = {
  readonly priceMicros: number | null;
  readonly dailyCapMicros: number | null;
  readonly monthlyCapMicros: number | null;
};

/** A CONNECT proxy. `url` holds its credentials; `caFile` is a path to PEM authorities trusted beside the system's. */
export type ProxySettings = {
  readonly url: string;
  readonly provider: "PLAIN" | "BRIGHT_DATA";
  readonly target: "ADDRESS" | "NAME";
  readonly caFile: string | null;
};

/** Every way out. Its part that names credentials is null while the route is not configured. */
export type RouteSettings = {
  readonly DIRECT: RouteRate;
  readonly DATACENTER: RouteRate & RouteMoney & { readonly proxy: ProxySettings | null };
  readonly RESIDENTIAL: RouteRate & RouteMoney & { readonly proxy: ProxySettings | null };
  readonly UNLOCKER: RouteRate &
    RouteMoney & { readonly api: { readonly url: string; readonly apiKey: string; readonly zone: string } | null };
  readonly CLOUDFLARE_RENDER: RouteRate &
    RouteMoney & {
      readonly api: { readonly url: string; readonly accountId: string; readonly apiToken: string } | null;
    };
  readonly LOCAL_RENDER: RouteRate & {
    readonly browser: {
      /** Null: looked for in the usual places. */
      readonly executablePath: string | null;
      readonly jobsMax: number;
      readonly memoryBytesMax: number;
    } | null;
  };
};
