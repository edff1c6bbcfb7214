import { readFileSync } from "node:fs";

/** A certificate with its key, in PEM. */
export type TlsFixture = { readonly cert: string; readonly key: string };

/**
 * Certificates for names under example.com, made once and valid until 2120 unless their name says otherwise; the
 * directory's README says how. `address` is for the IP 93.184.216.34.
 */
export type TlsFixtureName = "origin" | "other" | "expired" | "not-yet-valid" | "address" | "self-signed";

/** Reads one certificate. */
export function readTlsFixture(name: TlsFixtureName): TlsFixture {
  return { cert: read(`${name}.crt`), key: read(`${name}.key`) };
}

/** The authority that signed all of them but `self-signed`; its private key was thrown away. */
export function readTestAuthority(): string {
  return read("ca.crt");
}

function read(file: string): string {
  return readFileSync(new URL(`../../fixtures/tls/${file}`, import.meta.url), "utf8");
}
