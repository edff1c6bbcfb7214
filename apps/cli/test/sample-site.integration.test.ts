import { Webhook } from "standardwebhooks";
import { request } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SampleSite, startSampleSite } from "../src/stack/sample-site.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
let site: SampleSite;

beforeEach(async () => {
  site = await startSampleSite({ origin: 0, receiver: 0 });
  site.expectSecret(SECRET);
});
afterEach(() => site.close());

async function deliver(body: string, headers: Record<string, string>): Promise<number> {
  const answer = await request(site.receiverUrl, { method: "POST", body, headers });
  await answer.body.dump();
  return answer.statusCode;
}

function signed(body: string, id = "event-1"): Record<string, string> {
  const at = new Date();
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
    "webhook-signature": new Webhook(SECRET).sign(id, at, body),
  };
}

const eventOf = (jobId: string) =>
  JSON.stringify({ id: "event-1", type: "job.succeeded", data: { job: { id: jobId } } });

describe("startSampleSite", () => {
  it("serves a page, a redirect to it and its robots rules", async () => {
    const moved = await request(`${site.originUrl}/moved`);
    await moved.body.dump();
    expect([moved.statusCode, moved.headers["location"]]).toEqual([302, "/"]);
    const page = await request(`${site.originUrl}/`);
    expect(await page.body.text()).toContain("<h1>Sample page</h1>");
    const missing = await request(`${site.originUrl}/other`);
    await missing.body.dump();
    expect(missing.statusCode).toBe(404);
  });

  it("tells a right signature from a wrong one", async () => {
    const body = eventOf("a");
    expect(await deliver(body, signed(body))).toBe(204);
    expect(await site.waitForCallback("a", AbortSignal.timeout(5_000))).toMatchObject({ isVerified: true });
    const forged = eventOf("b");
    expect(await deliver(forged, signed(body))).toBe(204);
    expect(await site.waitForCallback("b", AbortSignal.timeout(5_000))).toMatchObject({ isVerified: false });
  });

  it("refuses what is no event, and ends a wait at its signal", async () => {
    for (const body of ["", "{", "[]", "null", '{"id":1,"type":2}', '{"id":"a","type":"b","data":null}x']) {
      expect(await deliver(body, {})).toBe(400);
    }
    await expect(site.waitForCallback("none", AbortSignal.timeout(20))).rejects.toThrow(/timeout/i);
  });
});
