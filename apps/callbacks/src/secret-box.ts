import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import type { SealedSecret } from "@keble-scraper/db/commands/callbacks";

/** Encrypts signing secrets at rest. */
export type SecretBox = {
  /** Names the key without telling it: the first 8 hex digits of its SHA-256. */
  readonly keyId: string;
  /** Seals a secret to its endpoint: under another endpoint's id it can't be opened. */
  seal(secret: Buffer, endpointId: string): SealedSecret;
  /** The secret; null when it was sealed with another key, to another endpoint, or was changed since. */
  open(sealed: SealedSecret, endpointId: string): Buffer | null;
};

const CIPHER = "aes-256-gcm";
/** 96 bits, drawn anew for every secret: what GCM is specified for. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A box with one key of 32 bytes. A sealed secret is nonce, tag and ciphertext in a row. */
export function createSecretBox(key: Buffer): SecretBox {
  const keyId = createHash("sha256").update(key).digest("hex").slice(0, 8);
  return {
    keyId,
    seal(secret, endpointId) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(endpointId, "utf8"));
      const body = Buffer.concat([cipher.update(secret), cipher.final()]);
      return { keyId, ciphertext: Buffer.concat([nonce, cipher.getAuthTag(), body]) };
    },
    open(sealed, endpointId) {
      if (sealed.keyId !== keyId || sealed.ciphertext.length < NONCE_BYTES + TAG_BYTES) return null;
      const nonce = sealed.ciphertext.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(endpointId, "utf8"));
      decipher.setAuthTag(sealed.ciphertext.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(sealed.ciphertext.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
      } catch {
        // Node throws an untyped error when the tag does not match; nothing else in here can fail.
        return null;
      }
    },
  };
}
