import { CallbackEndpoint, RegisteredCallbackEndpoint } from "@keble-scraper/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSecretBox } from "../src/secret-box.ts";
import { type CallbacksRig, openCallbacksRig, OPERATOR, SERVICE } from "./callbacks-rig.ts";

let rig: CallbacksRig;
beforeAll(async () => {
  rig = await openCallbacksRig();
});
afterAll(() => rig[Symbol.asyncDispose]());

const OTHER = { ...SERVICE, callerId: "other" };
const register = (input: object, principal = SERVICE) =>
  rig.client.registerEndpoint.mutate({
    principal,
    input: { name: "orders", url: "https://hooks.example.com/in", ...input },
  });
const refusal = (code: string, path?: string) => ({
  ok: false,
  failure: { code, ...(path === undefined ? {} : { details: [{ path }] }) },
});

describe("registerEndpoint", () => {
  it("answers the endpoint with the deployment's defaults and its secret, which is stored sealed", async () => {
    const answer = await register({ name: "first" });
    if (!answer.ok) throw new Error(answer.failure.code);
    expect(RegisteredCallbackEndpoint.parse(answer.value)).toEqual(answer.value);
    expect(answer.value).toMatchObject({
      callerId: "acme",
      name: "first",
      url: "https://hooks.example.com/in",
      enabled: true,
      disabledReason: null,
      events: ["job.succeeded", "job.failed", "job.cancelled"],
      attemptBudget: 10,
      timeoutMs: 15_000,
      maxConcurrency: 5,
      ratePerSecond: null,
    });
    const secret = Buffer.from(answer.value.secret.slice("whsec_".length), "base64");
    expect(secret).toHaveLength(32);
    const [row] = await rig.database.commands<[{ key_id: string; ciphertext: Buffer }]>`
      select key_id, ciphertext from callback_secrets where endpoint_id = ${answer.value.id}`;
    expect(row.ciphertext.includes(secret)).toBe(false);
    const box = createSecretBox(rig.settings.secretKey);
    expect(box.open({ keyId: row.key_id, ciphertext: row.ciphertext }, answer.value.id)).toEqual(secret);
    const read = await rig.client.getEndpoint.query({ principal: SERVICE, id: answer.value.id });
    expect(CallbackEndpoint.parse(read.ok && read.value)).not.toHaveProperty("secret");
    const audit = await rig.database.commands<{ actor: string; details: object }[]>`
      select actor, details from audit_events where subject = ${`callback-endpoint:${answer.value.id}`}`;
    expect(audit).toHaveLength(1);
    expect(audit[0]!.actor).toBe(SERVICE.keyId);
    expect(JSON.stringify(audit)).not.toContain(answer.value.secret.slice(6, 20));
  });

  it("takes what is named", async () => {
    const named = { name: "named", events: ["job.failed"], attemptBudget: 2, timeoutMs: 1_000, maxConcurrency: 1 };
    expect(await register(named)).toMatchObject({ ok: true, value: named });
  });

  it("refuses a second endpoint of a name, and frees the name of a deleted one", async () => {
    const first = await register({ name: "taken" });
    expect(await register({ name: "taken" })).toMatchObject(refusal("CONFLICT"));
    expect(await register({ name: "taken", callerId: "other" }, OPERATOR)).toMatchObject({ ok: true });
    if (!first.ok) throw new Error(first.failure.code);
    await rig.client.deleteEndpoint.mutate({ principal: SERVICE, id: first.value.id, force: false });
    expect(await register({ name: "taken" })).toMatchObject({ ok: true });
  });

  it("registers for a service's own caller only, and for the caller an operator names", async () => {
    expect(await register({ name: "own", callerId: "acme" })).toMatchObject({ ok: true, value: { callerId: "acme" } });
    expect(await register({ name: "foreign", callerId: "other" })).toMatchObject(refusal("FORBIDDEN"));
    expect(await register({ name: "whose" }, OPERATOR)).toMatchObject(refusal("INVALID_REQUEST", "callerId"));
    const scopeless = { ...SERVICE, scopes: ["jobs:write" as const] };
    expect(await register({ name: "scopeless" }, scopeless as unknown as typeof SERVICE)).toMatchObject(
      refusal("FORBIDDEN"),
    );
  });

  it("refuses a rate, which this release does not have", async () => {
    expect(await register({ name: "rated", ratePerSecond: 5 })).toMatchObject(
      refusal("NOT_SUPPORTED", "ratePerSecond"),
    );
  });

  it.each([
    "http://hooks.example.com/in",
    "https://127.0.0.1/",
    "http://127.0.0.1:1/",
    "https://169.254.169.254/latest/meta-data",
    "https://[::ffff:10.0.0.1]/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://localhost./",
    "https://user:pass@hooks.example.com/",
    "https://hooks.example.com:22/",
    "https://metadata.google.internal/",
    "ftp://hooks.example.com/",
    "hooks.example.com",
    "",
  ])("W6 refuses %s when it is saved, with one neutral text", async (url) => {
    const neutral = { ok: false, failure: { code: "TARGET_FORBIDDEN", message: "The target may not be fetched." } };
    expect(await register({ name: "forbidden", url })).toMatchObject(neutral);
    const { id } = await rig.register("/");
    expect(await rig.client.patchEndpoint.mutate({ principal: SERVICE, id, patch: { url } })).toMatchObject(neutral);
  });

  it("W7 takes a private receiver that the operator listed", async () => {
    expect(await register({ name: "listed", url: `${rig.receiver.url}/in` })).toMatchObject({ ok: true });
  });
});

describe("reading and changing endpoints", () => {
  it("shows a service its own caller's only, whatever it asks for, and an operator all", async () => {
    const mine = await rig.register("/mine");
    const query = (principal: typeof SERVICE, more = {}) =>
      rig.client.listEndpoints.query({ principal, query: { limit: 200, ...more } });
    const foreign = await query(OTHER, { callerId: "acme" });
    expect(foreign.ok && foreign.value.items.every((item) => item.callerId === "other")).toBe(true);
    const named = await query(OPERATOR, { name: mine.name, callerId: "acme" });
    expect(named).toMatchObject({ ok: true, value: { items: [{ id: mine.id }], nextCursor: null } });
    const asked = { principal: OTHER, id: mine.id };
    expect(await rig.client.getEndpoint.query(asked)).toMatchObject(refusal("NOT_FOUND"));
    expect(await rig.client.patchEndpoint.mutate({ ...asked, patch: { enabled: false } })).toMatchObject(
      refusal("NOT_FOUND"),
    );
    expect(await rig.client.deleteEndpoint.mutate({ ...asked, force: true })).toMatchObject(refusal("NOT_FOUND"));
    expect(await rig.client.getEndpoint.query({ principal: OPERATOR, id: mine.id })).toMatchObject({ ok: true });
  });

  it("refuses a cursor that is not ours", async () => {
    const query = { limit: 10, cursor: "bm90IG91cnM" };
    expect(await rig.client.listEndpoints.query({ principal: SERVICE, query })).toMatchObject(
      refusal("INVALID_REQUEST", "cursor"),
    );
    expect(await rig.client.listEvents.query({ principal: SERVICE, query })).toMatchObject(
      refusal("INVALID_REQUEST", "cursor"),
    );
  });

  it("says who disabled an endpoint, and keeps it disabled until it is enabled", async () => {
    const { id } = await rig.register("/switched");
    const patch = (enabled: boolean, principal = SERVICE) =>
      rig.client.patchEndpoint.mutate({ principal, id, patch: { enabled } });
    expect(await patch(false)).toMatchObject({ ok: true, value: { enabled: false, disabledReason: "CALLER" } });
    expect(await patch(true)).toMatchObject({ ok: true, value: { enabled: true, disabledReason: null } });
    expect(await patch(false, OPERATOR)).toMatchObject({ ok: true, value: { disabledReason: "OPERATOR" } });
  });
});

describe("events", () => {
  it("C3 disabling and deleting end what waits, and its owner alone sees it", async () => {
    const endpoint = await rig.register("/closed");
    const { eventId, jobId } = await rig.endJob(endpoint.name);
    expect(await rig.client.deleteEndpoint.mutate({ principal: SERVICE, id: endpoint.id, force: false })).toMatchObject(
      refusal("CONFLICT"),
    );
    await rig.client.patchEndpoint.mutate({ principal: SERVICE, id: endpoint.id, patch: { enabled: false } });
    const dead = { state: "DEAD_LETTER", deadLetterReason: "ENDPOINT_DISABLED" };
    expect(await rig.client.getEvent.query({ principal: SERVICE, id: eventId })).toMatchObject({
      ok: true,
      value: { jobId, endpoint: endpoint.name, ...dead, deliveries: [{ ...dead, attemptsUsed: 0, tries: [] }] },
    });
    expect(await rig.client.getEvent.query({ principal: OTHER, id: eventId })).toMatchObject(refusal("NOT_FOUND"));
    const query = { limit: 10, endpointId: endpoint.id, state: "DEAD_LETTER" as const };
    expect(await rig.client.listEvents.query({ principal: SERVICE, query })).toMatchObject({
      ok: true,
      value: { items: [{ id: eventId, ...dead }], nextCursor: null },
    });
    expect(await rig.client.listEvents.query({ principal: OTHER, query })).toMatchObject({
      ok: true,
      value: { items: [] },
    });
  });
});
