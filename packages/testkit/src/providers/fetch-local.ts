import { request } from "node:http";

/** What a local server answered. */
export type LocalAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly finalUrl: string;
};

/** Redirects that a provider follows by itself. */
const REDIRECTS_MAX = 5;

/**
 * Fetches a page for a stand-in, following redirects, from this machine only: a loopback URL as it is written, any other
 * from `port` on 127.0.0.1 with the URL's own Host. Null: there is no way there.
 */
export async function fetchLocal(url: string, port: number | null, userAgent: string): Promise<LocalAnswer | null> {
  let at = new URL(url);
  for (let hop = 0; ; hop += 1) {
    const to = isLoopback(at) ? Number(at.port === "" ? 80 : at.port) : port;
    if (to === null) return null;
    const answer = await ask(at, to, userAgent).catch(() => null);
    const location = answer?.headers["location"];
    if (answer === null || location === undefined || answer.status < 300 || answer.status > 399) return answer;
    if (hop === REDIRECTS_MAX || !URL.canParse(location, at.href)) return answer;
    at = new URL(location, at.href);
  }
}

function isLoopback(url: URL): boolean {
  return url.hostname === "localhost" || url.hostname === "[::1]" || url.hostname.startsWith("127.");
}

function ask(url: URL, port: number, userAgent: string): Promise<LocalAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port,
        path: url.pathname + url.search,
        agent: false,
        headers: { host: url.host, "user-agent": userAgent, accept: "*/*" },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", reject);
        incoming.on("end", () => {
          const headers = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]);
          resolve({
            status: incoming.statusCode ?? 0,
            headers: Object.fromEntries(headers) as Record<string, string>,
            body: Buffer.concat(chunks),
            finalUrl: url.href,
          });
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}
