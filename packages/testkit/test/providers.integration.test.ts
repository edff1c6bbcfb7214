import { page, redirect, startCloudflareApi, startOrigin, startUnlockerApi } from "@keble-scraper/testkit";
import { expect, it } from "vitest";

async function post(url: string, token: string, body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

it("the Unlocker's stand-in fetches from a local origin, under the URL's own Host, and follows redirects", async () => {
  await using origin = await startOrigin({ paths: { "/a": redirect("/b"), "/b": page("here") } });
  await using api = await startUnlockerApi({ originPort: origin.port });
  const ask = (url: string) =>
    post(`${api.url}/request`, api.apiKey, { zone: api.zone, url, format: "raw", debug: true });
  const named = await ask("https://shop.example.com/a");
  expect(await named.text()).toBe("here");
  expect(named.headers.get("x-brd-status-code")).toBe("200");
  expect(named.headers.get("x-brd-final-url")).toBe("https://shop.example.com/b");
  expect(named.headers.get("x-brd-debug")).toContain("billed=true");
  expect(origin.requests.map(({ path, headers }) => `${headers["host"]}${path}`)).toEqual([
    "shop.example.com/a",
    "shop.example.com/b",
  ]);
  const missing = await ask(`http://127.0.0.1:${origin.port}/none`);
  expect(missing.headers.get("x-brd-status-code")).toBe("404");
});

it("without a way there, both answer that the name does not resolve, and reach nothing outside", async () => {
  await using unlocker = await startUnlockerApi();
  const url = "https://shop.example.com/";
  const refused = await post(`${unlocker.url}/request`, unlocker.apiKey, { zone: unlocker.zone, url, format: "raw" });
  expect(refused.status).toBe(200);
  expect(refused.headers.get("x-brd-error-code")).toBe("proxy_error");
  await using cloudflare = await startCloudflareApi();
  const path = `/accounts/${cloudflare.accountId}/browser-rendering/content`;
  const answer = await post(`${cloudflare.url}${path}`, cloudflare.apiToken, { url });
  expect(answer.status).toBe(422);
  expect(await answer.json()).toMatchObject({ success: false, errors: [{ code: 5005 }] });
});

it("Browser Rendering's stand-in shows a local origin's page, and its text files as Chrome does", async () => {
  await using origin = await startOrigin({
    paths: {
      "/p": (reply) => reply.send({ headers: { "Content-Type": "text/html" }, body: "<p>hi</p>" }),
      "/robots.txt": (reply) => reply.send({ headers: { "Content-Type": "text/plain" }, body: "User-agent: <*>" }),
    },
  });
  await using api = await startCloudflareApi({ originPort: origin.port });
  const at = `${api.url}/accounts/${api.accountId}/browser-rendering/content?cacheTTL=0`;
  const shown = async (path: string) =>
    (await (await post(at, api.apiToken, { url: `http://shop.example.com${path}` })).json()) as { result: string };
  expect(await shown("/p")).toMatchObject({ success: true, result: "<p>hi</p>", meta: { status: 200 } });
  expect((await shown("/robots.txt")).result).toContain(
    '<pre style="word-wrap: break-word; white-space: pre-wrap;">User-agent: &lt;*&gt;</pre>',
  );
});

it("both refuse what their protocols refuse", async () => {
  await using unlocker = await startUnlockerApi();
  const bad = await post(`${unlocker.url}/request`, unlocker.apiKey, {
    zone: unlocker.zone,
    url: "https://a.example.com",
    format: "raw",
    cookies: 1,
  });
  expect([bad.status, await bad.json()]).toMatchObject([400, { error_code: "validation" }]);
  await using cloudflare = await startCloudflareApi();
  const at = `${cloudflare.url}/accounts/${cloudflare.accountId}/browser-rendering/content`;
  for (const body of [
    {},
    { url: "https://a.example.com", html: "x" },
    { html: "x", gotoOptions: { timeout: 60_001 } },
  ]) {
    expect((await post(at, cloudflare.apiToken, body)).status).toBe(400);
  }
  const elsewhere = at.replace(cloudflare.accountId, "f".repeat(32));
  expect((await post(elsewhere, cloudflare.apiToken, { html: "x" })).status).toBe(403);
});
