import { describe, expect, it } from "vitest";
import { canNarrow, parseProxyUrl, toProxyAuthorization } from "./proxy-credentials.ts";

const NAME = "brd-customer-hl_1a2b-zone-dc1";

function userNameOf(userName: string, wish: { country?: string; session?: string }, provider = "BRIGHT_DATA" as const) {
  const address = { host: "proxy", port: 1, credentials: { userName, password: "p:w" } };
  const value = toProxyAuthorization(address, provider, { country: null, session: null, ...wish });
  const decoded = Buffer.from(value!.slice("Basic ".length), "base64").toString();
  expect(decoded.endsWith(":p:w")).toBe(true);
  return decoded.slice(0, -":p:w".length);
}

describe("parseProxyUrl", () => {
  it("takes host, port and decoded credentials apart", () => {
    expect(parseProxyUrl("http://us%40er:p%3Aw@proxy.internal:44445")).toEqual({
      host: "proxy.internal",
      port: 44_445,
      credentials: { userName: "us@er", password: "p:w" },
    });
  });

  it("knows the scheme's port, IPv6 addresses and proxies without credentials", () => {
    expect(parseProxyUrl("http://[2001:db8::1]")).toEqual({ host: "2001:db8::1", port: 80, credentials: null });
  });

  it("keeps a password that only looks percent-encoded", () => {
    expect(parseProxyUrl("http://u:100%zz@proxy:1").credentials?.password).toBe("100%zz");
  });

  it.each(["https://u:hunter2@proxy:1", "u:hunter2@proxy", "socks5://u:hunter2@proxy:1"])(
    "refuses %s and does not repeat it",
    (text) => {
      expect(() => parseProxyUrl(text)).toThrow(/^(?!.*hunter2)/);
    },
  );
});

describe("toProxyAuthorization", () => {
  it("W5 writes country and session behind the zone", () => {
    expect(userNameOf(NAME, {})).toBe(NAME);
    expect(userNameOf(NAME, { country: "us", session: "ab12" })).toBe(`${NAME}-country-us-session-ab12`);
  });

  it("W5 an attempt's wish replaces what the configured name says, and nothing else of it", () => {
    expect(
      userNameOf(`${NAME}-session-old-route_err-block-country-de-dns-remote`, { country: "us", session: "s1" }),
    ).toBe(`${NAME}-route_err-block-dns-remote-country-us-session-s1`);
    expect(userNameOf(`${NAME}-country-de`, { session: "s1" })).toBe(`${NAME}-country-de-session-s1`);
  });

  it("W5 a zone or customer that is named like a flag is left alone", () => {
    const name = "lum-customer-c1-zone-country-session-x";
    expect(userNameOf(name, { session: "s1" })).toBe("lum-customer-c1-zone-country-session-s1");
  });

  it("W5 an exit that the operator pinned stays pinned", () => {
    expect(userNameOf(`${NAME}-ip-93.184.216.34`, { country: "us", session: "s" })).toBe(`${NAME}-ip-93.184.216.34`);
    expect(userNameOf(`${NAME}-country-us-city-boston`, { country: "de", session: "s" })).toBe(
      `${NAME}-country-us-city-boston-session-s`,
    );
  });

  it("leaves the name of another provider's proxy alone", () => {
    expect(userNameOf("user", { country: "us", session: "s" }, "PLAIN" as never)).toBe("user");
  });

  it.each([
    { country: "US" },
    { country: "usa" },
    { session: "a-country-de" },
    { session: "" },
    { session: "x".repeat(33) },
  ])("W5 lets no flag be written through %o", (wish) => {
    expect(() => userNameOf(NAME, wish)).toThrow();
  });
});

describe("canNarrow", () => {
  it.each([
    ["BRIGHT_DATA", NAME, { country: true, session: true }],
    ["BRIGHT_DATA", `${NAME}-country-us`, { country: true, session: true }],
    ["BRIGHT_DATA", `${NAME}-country-us-state-ny`, { country: false, session: true }],
    ["BRIGHT_DATA", `${NAME}-gip-europe_1`, { country: false, session: false }],
    ["PLAIN", NAME, { country: false, session: false }],
  ] as const)("W5 %s with %s can serve %o", (provider, userName, expected) => {
    expect(canNarrow({ url: `http://${userName}:pw@proxy:1`, provider })).toEqual(expected);
  });

  it("nothing can be asked of a proxy without credentials", () => {
    expect(canNarrow({ url: "http://proxy:1", provider: "BRIGHT_DATA" })).toEqual({ country: false, session: false });
  });
});
