import { createHmac } from "node:crypto";

/** What a try says of itself, in the headers of Standard Webhooks. */
export type SignedHeaders = {
  readonly "content-type": "application/json";
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
};

/**
 * Signs the exact bytes of a try with every live secret: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`,
 * one per secret, a space between. The key is the secret's bytes, which its text (`whsec_…`) holds as base64.
 */
export function signTry(attempt: {
  readonly eventId: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
  readonly secrets: readonly Buffer[];
}): SignedHeaders {
  const { eventId, timestamp, body } = attempt;
  const signatures = attempt.secrets.map((secret) => {
    const digest = createHmac("sha256", secret)
      .update(`${eventId}.${timestamp}.`)
      .update(body, "utf8")
      .digest("base64");
    return `v1,${digest}`;
  });
  return {
    "content-type": "application/json",
    "webhook-id": eventId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
}
