import type { Socket } from "node:net";
import type { ProxyJob } from "./proxy-job.ts";
import { reachTarget, type ReachParts, vetProxied } from "./reach-target.ts";

/** Whose connection it is, and who counts the sockets that leave. */
export type ProxyAsking = { readonly job: ProxyJob; readonly noteUpstream: (raw: Socket) => void };

/**
 * Answers one CONNECT: a tunnel to a vetted address of `authority`, or 403 (502 when the target could not be connected)
 * without a reason. The tunnel is closed with the job, and when the target says nothing within the connect timeout: both TLS
 * and WebSockets need a word of its own first.
 */
export async function forwardTunnel(
  authority: string,
  from: { readonly client: Socket; readonly head: Buffer },
  { job, noteUpstream }: ProxyAsking,
  parts: ReachParts,
): Promise<void> {
  const { client, head } = from;
  // The policy reads names, addresses and ports; the scheme that will be spoken inside cannot be seen.
  const url = vetProxied(`https://${authority}/`, parts.policy);
  const done = url === null ? null : job.begin();
  if (url === null || done === null) {
    client.end(`HTTP/1.1 403 Forbidden\r\n${NO_BODY}`);
    return;
  }
  client.once("close", done);
  const track = (raw: Socket): void => {
    noteUpstream(raw);
    job.track(raw);
  };
  const reached = await reachTarget(url, { stop: job.stop, timings: job.timingsFor(url), track }, parts);
  if (!reached.ok) {
    if (reached.kind !== "STOPPED") job.note(url, { kind: reached.kind, nativeCode: reached.nativeCode });
    client.end(`HTTP/1.1 ${reached.kind === "REFUSED" ? "403 Forbidden" : "502 Bad Gateway"}\r\n${NO_BODY}`);
    return;
  }
  const upstream = reached.socket;
  if (client.destroyed || job.isClosed) {
    upstream.destroy();
    return;
  }
  const silence = setTimeout(() => {
    job.note(url, { kind: "CONNECT_TIMEOUT", nativeCode: null });
    upstream.destroy();
  }, parts.limits.connectTimeoutMs);
  upstream.once("data", () => {
    clearTimeout(silence);
  });
  upstream.once("close", () => {
    clearTimeout(silence);
    client.end();
    // What was read is flushed; a browser that does not close its half is not waited for.
    client.destroySoon();
  });
  client.once("close", () => upstream.destroy());
  client.on("error", () => client.destroy());
  client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
  if (head.length > 0) upstream.write(head);
  upstream.on("data", job.check);
  client.on("data", job.check);
  upstream.pipe(client);
  client.pipe(upstream);
}

const NO_BODY = "Content-Length: 0\r\nConnection: close\r\n\r\n";
