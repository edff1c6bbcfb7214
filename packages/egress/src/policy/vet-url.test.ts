import fc from "fast-check";
import { describe, expect, test } from "vitest";
import vectors from "../../fixtures/url-vectors.json" with { type: "json" };
import { parseAllowedTargets } from "./allowed-targets.ts";
import { parseCidr } from "./cidr.ts";
import { vetAddresses } from "./vet-addresses.ts";
import { vetUrl } from "./vet-url.ts";

type Vector = (typeof vectors)[number];

function listed(...entries: string[]) {
  const parsed = parseAllowedTargets(entries);
  if (!parsed.ok) throw new Error("bad list");
  return { allowedTargets: parsed.targets };
}

function blockStartingWith({ block }: Vector): unknown {
  return expect.stringContaining(`${block} (`);
}

describe("URL policy", () => {
  test.each(vectors.filter(({ stage }) => stage !== "dns"))("W6 $id $expect $reason $note", (vector: Vector) => {
    const result = vetUrl(vector.url);
    const expected =
      vector.reason === "ok"
        ? { ok: true, url: { host: vector.node_url_host } }
        : { ok: false, reason: vector.reason, ...(vector.stage === "address" && { block: blockStartingWith(vector) }) };
    expect(result).toMatchObject(expected);
  });

  test.each(vectors.filter(({ stage }) => stage === "dns"))("W6 $id $expect $reason $note", (vector: Vector) => {
    const result = vetUrl(vector.url);
    if (!result.ok) throw new Error(`refused: ${result.reason}`);
    const { A = [], AAAA = [] } = vector.dns ?? {};
    const vetted = vetAddresses([...A, ...AAAA], { reach: result.url.reach });
    expect(vetted).toMatchObject(
      vector.reason === "ok" ? { ok: true } : { ok: false, reason: vector.reason, block: blockStartingWith(vector) },
    );
  });

  test("a vetted URL says where to go in one reading", () => {
    expect(vetUrl(" HTTPS://Example.COM.:8443/a/../b?x=1#f ")).toEqual({
      ok: true,
      url: {
        href: "https://example.com.:8443/b?x=1",
        protocol: "https:",
        host: "example.com.",
        name: "example.com",
        address: null,
        port: 8443,
        target: "/b?x=1",
        origin: "https://example.com.:8443",
        reach: "PUBLIC",
      },
    });
    expect(vetUrl("http://[2606:4700:4700:0:0:0:0:1111]")).toMatchObject({
      url: { host: "[2606:4700:4700::1111]", name: null, address: "2606:4700:4700::1111", port: 80, target: "/" },
    });
  });

  test.each([
    ["http://example.com/\u200e", "bidi_control"],
    ["http://example.com/\ud800\ntail", "control_char"],
    ["http://@example.com/", "credentials"],
    ["http://", "authority_form"],
    ["http:\\\\example.com/", "authority_form"],
    ["http://:80/", "unparsable"],
    ["http://example.com../", "host_charset"],
    ["http://exa mple@example.com:x/", "credentials"],
    [`http://${"a".repeat(64)}.com/`, "host_length"],
    [`http://${"a.".repeat(126)}com/`, "host_length"],
    ["http://127.0.0.1:25/", "address"],
    ["http://localhost:25/", "host_special_use"],
    ["http://x.metadata.goog/", "host_special_use"],
    ["http://example.com:0/", "port"],
    ["1http://example.com/", "no_scheme"],
  ])("%j is refused as %s", (url, reason) => {
    expect(vetUrl(url)).toMatchObject({ ok: false, reason });
  });

  test("W6 a URL is bounded as it is written and as it is passed on, however it is padded", () => {
    expect(vetUrl(`https://example.com/${"a".repeat(8173)}`)).toEqual({ ok: false, reason: "too_long" });
    expect(vetUrl(`https://example.com/${"你".repeat(4000)}`)).toEqual({ ok: false, reason: "too_long" });
    expect(vetUrl(`${" ".repeat(500_000)}x${" ".repeat(500_000)}x`)).toEqual({ ok: false, reason: "too_long" });
    expect(vetUrl(`${" ".repeat(9000)}http://example.com/${" ".repeat(9000)}`).ok).toBe(true);
  });

  test("W7 a listed target is allowed for exactly its host and port", () => {
    const options = listed("127.0.0.1:8080", "localhost:3000", "[::1]:8080", "origin:80", "origin1:25");
    for (const url of [
      "http://127.0.0.1:8080/a",
      "http://LOCALHOST:3000/",
      "http://localhost.:3000/",
      "http://[0:0::1]:8080/",
      "http://origin/",
      "http://origin1:25/",
    ]) {
      expect(vetUrl(url, options)).toMatchObject({ ok: true, url: { reach: "LOCAL" } });
    }
    for (const [url, reason] of [
      ["http://127.0.0.1:8081/", "address"],
      ["http://127.0.0.2:8080/", "address"],
      ["https://127.0.0.1/", "address"],
      ["http://localhost/", "host_special_use"],
      ["https://origin/", "host_single_label"],
      ["http://sub.localhost:3000/", "host_special_use"],
    ] as const) {
      expect(vetUrl(url, options)).toMatchObject({ ok: false, reason });
    }
    expect(vetUrl("http://example.com/", options)).toMatchObject({ ok: true, url: { reach: "PUBLIC" } });
  });

  test("W7 listing never excuses a spelling that other parsers read differently", () => {
    const options = listed("127.0.0.1:8080", "localhost:3000");
    for (const [url, reason] of [
      ["http://0x7f.1:8080/", "host_noncanonical_ipv4"],
      ["http://2130706433:8080/", "host_noncanonical_ipv4"],
      ["http://127.0.0.1.:8080/", "host_noncanonical_ipv4"],
      ["http://ｌｏｃａｌｈｏｓｔ:3000/", "host_confusable"],
      ["http://u@localhost:3000/", "credentials"],
      ["http:localhost:3000/", "authority_form"],
    ] as const) {
      expect(vetUrl(url, options)).toMatchObject({ ok: false, reason });
    }
  });

  test("W7 a metadata service stays refused when listed", () => {
    const options = listed(
      "169.254.169.254:80",
      "[fd00:ec2::254]:80",
      "[::ffff:a9fe:a9fe]:80",
      "metadata.google.internal:80",
    );
    expect(vetUrl("http://169.254.169.254/", options)).toMatchObject({ ok: false, reason: "address" });
    expect(vetUrl("http://[fd00:ec2::254]/", options)).toMatchObject({ ok: false, reason: "address" });
    expect(vetUrl("http://[::ffff:169.254.169.254]/", options)).toMatchObject({ ok: false, reason: "address" });
    expect(vetUrl("http://metadata.google.internal/", options)).toMatchObject({
      ok: false,
      reason: "host_special_use",
    });
  });

  test("an operator's denied block holds for literals, and allowed answers do not make literals public", () => {
    const denyCidrs = [parseCidr("8.8.8.0/24")].filter((cidr) => cidr !== null);
    const allowResolvedCidrs = [parseCidr("198.18.0.0/15")].filter((cidr) => cidr !== null);
    expect(vetUrl("http://8.8.8.8/", { denyCidrs })).toMatchObject({ ok: false, reason: "address" });
    expect(vetUrl("http://198.18.0.1/", { allowResolvedCidrs })).toMatchObject({ ok: false, reason: "address" });
  });

  test("hostile text never throws, and what is accepted is accepted again unchanged", () => {
    const piece = fc.oneof(
      fc.constantFrom("http:", "https:", "//", "/", "\\", "@", ":", "?", "#", "%", "[", "]", ".", "::", "xn--", " "),
      fc.constantFrom("example.com", "127.0.0.1", "0x7f", "localhost", "2606:4700::1111", "8.8.8.8", "80", "-", "_"),
      fc.string({ unit: "binary", maxLength: 4 }),
      fc.string({ unit: "grapheme", maxLength: 4 }),
      fc.webUrl(),
    );
    const text = fc.oneof(
      fc.array(piece, { maxLength: 10 }).map((pieces) => pieces.join("")),
      fc.array(piece, { maxLength: 6 }).map((pieces) => `http://example.com/${pieces.join("")}`),
      fc.array(piece, { maxLength: 4 }).map((pieces) => `https://${pieces.join("")}`),
    );
    fc.assert(
      fc.property(text, (raw) => {
        const first = vetUrl(raw);
        const again = first.ok ? vetUrl(first.url.href) : first;
        expect(again).toEqual(first);
      }),
      { numRuns: 3000 },
    );
  });
});
