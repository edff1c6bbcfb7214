import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { signTry } from "./sign-try.ts";

const EVENT_ID = "01900000-0000-7000-8000-000000000001";
const now = () => Math.floor(Date.now() / 1_000);
const textOf = (secret: Buffer) => `whsec_${secret.toString("base64")}`;

describe("signTry", () => {
  const secret = randomBytes(32);
  const body = '{"emoji":"🙂","line":"\u2028","number":1.0}\n';
  const headers = signTry({ eventId: EVENT_ID, timestamp: now(), body, secrets: [secret] });

  it("C3 is what the official library signs and verifies, over the raw bytes", () => {
    const webhook = new Webhook(textOf(secret));
    expect(() => webhook.verify(Buffer.from(body), { ...headers }, { jsonParse: false })).not.toThrow();
    const signed = webhook.sign(EVENT_ID, new Date(Number(headers["webhook-timestamp"]) * 1_000), body);
    expect(headers["webhook-signature"]).toBe(signed);
  });

  it("is not verified over one flipped byte, another id, or a timestamp of 301 seconds ago or ahead", () => {
    const webhook = new Webhook(textOf(secret));
    const flipped = Buffer.from(body);
    flipped[3]! ^= 1;
    expect(() => webhook.verify(flipped, { ...headers }, { jsonParse: false })).toThrow();
    expect(() => webhook.verify(body, { ...headers, "webhook-id": "other" }, { jsonParse: false })).toThrow();
    for (const seconds of [-301, 301]) {
      const stale = signTry({ eventId: EVENT_ID, timestamp: now() + seconds, body, secrets: [secret] });
      expect(() => webhook.verify(body, { ...stale }, { jsonParse: false })).toThrow();
    }
  });

  it("C3 signs with every live secret, so that either verifies", () => {
    const other = randomBytes(32);
    const both = signTry({ eventId: EVENT_ID, timestamp: now(), body, secrets: [other, secret] });
    expect(both["webhook-signature"].split(" ")).toHaveLength(2);
    for (const live of [secret, other]) {
      expect(() => new Webhook(textOf(live)).verify(body, { ...both }, { jsonParse: false })).not.toThrow();
    }
    expect(() => new Webhook(textOf(randomBytes(32))).verify(body, { ...both }, { jsonParse: false })).toThrow();
  });
});
