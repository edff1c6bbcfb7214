import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createSecretBox } from "./secret-box.ts";

const KEY = Buffer.alloc(32, 7);
const SECRET = randomBytes(32);

describe("createSecretBox", () => {
  it("opens what it sealed", () => {
    const box = createSecretBox(KEY);
    const sealed = box.seal(SECRET, "endpoint-1");
    expect(sealed.keyId).toBe(box.keyId);
    expect(createSecretBox(Buffer.from(KEY)).open(sealed, "endpoint-1")).toEqual(SECRET);
  });

  it("O5 shows nothing of the secret, and never twice the same", () => {
    const box = createSecretBox(KEY);
    const [first, second] = [box.seal(SECRET, "endpoint-1"), box.seal(SECRET, "endpoint-1")];
    expect(first.ciphertext.includes(SECRET.subarray(0, 4))).toBe(false);
    expect(first.ciphertext.equals(second.ciphertext)).toBe(false);
  });

  it("O5 opens nothing under another endpoint's id", () => {
    const box = createSecretBox(KEY);
    expect(box.open(box.seal(SECRET, "endpoint-1"), "endpoint-2")).toBeNull();
  });

  it("opens nothing that was changed or cut", () => {
    const box = createSecretBox(KEY);
    const { keyId, ciphertext } = box.seal(SECRET, "endpoint-1");
    for (let at = 0; at < ciphertext.length; at += 1) {
      const changed = Buffer.from(ciphertext);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(box.open({ keyId, ciphertext: changed }, "endpoint-1")).toBeNull();
    }
    expect(box.open({ keyId, ciphertext: ciphertext.subarray(0, 27) }, "endpoint-1")).toBeNull();
    expect(box.open({ keyId, ciphertext: Buffer.alloc(0) }, "endpoint-1")).toBeNull();
  });

  it("opens nothing of another key, and names keys without telling them", () => {
    const [box, other] = [createSecretBox(KEY), createSecretBox(Buffer.alloc(32, 8))];
    expect(box.keyId).toMatch(/^[0-9a-f]{8}$/);
    expect(other.keyId).not.toBe(box.keyId);
    expect(other.open(box.seal(SECRET, "endpoint-1"), "endpoint-1")).toBeNull();
    expect(other.open({ ...box.seal(SECRET, "endpoint-1"), keyId: other.keyId }, "endpoint-1")).toBeNull();
  });
});
