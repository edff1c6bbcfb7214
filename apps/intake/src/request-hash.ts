import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/**
 * SHA-256, hex, of a request body as canonical JSON (RFC 8785), as it was sent: before defaults, so that two bodies are
 * the same exactly when their JSON is.
 */
export function requestHash(body: unknown): string {
  return createHash("sha256")
    .update(canonicalize(body) ?? "null")
    .digest("hex");
}
