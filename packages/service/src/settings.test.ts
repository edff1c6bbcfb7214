import { describe, expect, test } from "vitest";
import { faultyNames, parse, PRODUCTION, REQUIRED } from "../test/test-env.ts";
import { type SettingName, SETTINGS } from "./setting-table.ts";
import { renderSettingsPage } from "./settings-page.ts";
import { listUnknownSettings, parseSettings, renderSettingsFaults } from "./settings.ts";

describe("defaults", () => {
  test("the documented timings hold when nothing is set", () => {
    const { timings, retry, callbacks, fetching, publish, retention, callers } = parse();
    expect(timings).toEqual({
      leaseMs: 60_000,
      pollMs: 5_000,
      maintenanceMs: 15_000,
      abortGraceMs: 2_000,
      drainGraceMs: 20_000,
    });
    expect(retry).toEqual({ baseMs: 500, ceilingMs: 60_000 });
    expect(publish).toEqual({ concurrency: 16 });
    expect(fetching).toMatchObject({
      attemptMs: 60_000,
      connectTimeoutMs: 10_000,
      responseTimeoutMs: 30_000,
      bodyIdleTimeoutMs: 15_000,
      bodyBytesMax: 100 * 1_024 * 1_024,
    });
    expect(callbacks).toMatchObject({
      timeoutMs: 15_000,
      retryBaseMs: 5_000,
      retryCeilingMs: 36_000_000,
      attemptBudget: 10,
    });
    expect(retention).toEqual({
      jobMs: 90 * 86_400_000,
      eventMs: 30 * 86_400_000,
      artifactMs: 90 * 86_400_000,
      evidenceMs: 7 * 86_400_000,
      cacheMs: 7 * 86_400_000,
      purgeRowsPerMinute: 1_000,
      auditDays: 400,
    });
    expect(callers).toEqual({
      queuedMax: 100_000,
      runningMax: null,
      dailyCapMicros: null,
      monthlyCapMicros: null,
    });
  });

  test("every default is a value that its own setting accepts", () => {
    for (const [name, setting] of Object.entries(SETTINGS)) {
      if (typeof setting.absent === "object") {
        expect(setting.parse(setting.absent.text), name).toBeDefined();
      }
    }
  });

  test("O1 the environment has no default, except where the caller brings one", () => {
    expect(faultyNames({ SCRAPER_ENVIRONMENT: undefined })).toEqual(["SCRAPER_ENVIRONMENT"]);
    const parsed = parseSettings(
      { ...REQUIRED, SCRAPER_ENVIRONMENT: undefined },
      { environmentDefault: "development" },
    );
    expect(parsed.ok && parsed.value.environment).toBe("development");
    const given = parseSettings(REQUIRED, { environmentDefault: "development" });
    expect(given.ok && given.value.environment).toBe("test");
  });

  test("a base stands in for what the environment lacks, and for nothing else", () => {
    const parsed = parseSettings(
      { SCRAPER_ENVIRONMENT: "test", SCRAPER_REDIS_URL: "redis://own:1", SCRAPER_SERVICE_TOKEN: "  " },
      { base: REQUIRED },
    );
    expect(parsed.ok && parsed.value.redis.url).toBe("redis://own:1");
    expect(parsed.ok && parsed.value.internal.serviceToken).toBe(REQUIRED.SCRAPER_SERVICE_TOKEN);
  });
});

describe("faults", () => {
  test("O1 whitespace-only is absent", () => {
    expect(faultyNames({ SCRAPER_DATABASE_URL: " \t " })).toEqual(["SCRAPER_DATABASE_URL"]);
    expect(parse({ SCRAPER_LEASE_SECONDS: "   " }).timings.leaseMs).toBe(60_000);
    expect(parse({ SCRAPER_CALLER_RUNNING_MAX: " " }).callers.runningMax).toBeNull();
  });

  test("O1 all faults are reported at once, by name, and no value is shown", () => {
    const parsed = parseSettings({
      SCRAPER_ENVIRONMENT: "canary-environment",
      SCRAPER_DATABASE_URL: "mysql://canary-user:canary-password@host/db",
      SCRAPER_SERVICE_TOKEN: "canary short",
      SCRAPER_SECRET_KEY: "canary-key",
      SCRAPER_LEASE_SECONDS: "canary-lease",
      SCRAPER_GATEWAY_PORT: "70000",
    });
    const faults = parsed.ok ? [] : parsed.faults;
    expect(faults.map((fault) => fault.name)).toEqual([
      "SCRAPER_ENVIRONMENT",
      "SCRAPER_DATABASE_URL",
      "SCRAPER_REDIS_URL",
      "SCRAPER_GATEWAY_PORT",
      "SCRAPER_SERVICE_TOKEN",
      "SCRAPER_SECRET_KEY",
      "SCRAPER_LEASE_SECONDS",
    ]);
    expect(renderSettingsFaults(faults)).not.toMatch(/canary|70000|mysql/u);
  });

  test("J2 a lease under 4 s is refused", () => {
    expect(faultyNames({ SCRAPER_LEASE_SECONDS: "3.999" })).toEqual(["SCRAPER_LEASE_SECONDS"]);
    expect(parse({ SCRAPER_LEASE_SECONDS: "4" }).timings.leaseMs).toBe(4_000);
  });

  test.each(["-1", "+5", "1e3", "0x10", "5s", "5,0", "5.", ".5", "NaN", "Infinity", "1 0", "٥", "9".repeat(16)])(
    "a number is plain decimal digits: %s is refused",
    (text) => {
      expect(faultyNames({ SCRAPER_POLL_INTERVAL_SECONDS: text })).toEqual(["SCRAPER_POLL_INTERVAL_SECONDS"]);
    },
  );

  test("a count admits no fraction, a duration in seconds does", () => {
    expect(faultyNames({ SCRAPER_FETCH_SLOTS: "1.5" })).toEqual(["SCRAPER_FETCH_SLOTS"]);
    expect(parse({ SCRAPER_POLL_INTERVAL_SECONDS: "0.25" }).timings.pollMs).toBe(250);
  });

  test("audit rows are kept for as many days as a setting says, fractions included", () => {
    expect(parse({ SCRAPER_AUDIT_RETENTION_DAYS: "0.5" }).retention.auditDays).toBe(0.5);
  });

  test.each([
    ["64 hexadecimal digits", REQUIRED.SCRAPER_SECRET_KEY, true],
    ["base64", Buffer.alloc(32, 7).toString("base64"), true],
    ["base64url", Buffer.alloc(32, 255).toString("base64url"), true],
    ["31 bytes", Buffer.alloc(31).toString("base64"), false],
    ["33 bytes", Buffer.alloc(33).toString("base64"), false],
    ["63 digits", REQUIRED.SCRAPER_SECRET_KEY.slice(1), false],
  ])("the secret key is 32 bytes: %s", (_what, text, isGood) => {
    expect(faultyNames({ SCRAPER_SECRET_KEY: text })).toEqual(isGood ? [] : ["SCRAPER_SECRET_KEY"]);
    expect(parse({ SCRAPER_SECRET_KEY: isGood ? text : REQUIRED.SCRAPER_SECRET_KEY }).secretKey).toHaveLength(32);
  });
});

describe("relations", () => {
  test("W7 private targets are refused outside development and test", () => {
    const name: SettingName = "SCRAPER_DEVELOPMENT_ALLOWED_TARGETS";
    expect(faultyNames({ ...PRODUCTION, [name]: "10.0.0.1:80" })).toContain(name);
    expect(faultyNames({ ...PRODUCTION, SCRAPER_ENVIRONMENT: "staging", [name]: "10.0.0.1:80" })).toContain(name);
    expect(parse({ [name]: "127.0.0.1:8080, Shop.Test:81,[::1]:82" }).fetching.allowedTargets).toEqual([
      { host: "127.0.0.1", port: 8080 },
      { host: "shop.test", port: 81 },
      { host: "::1", port: 82 },
    ]);
  });

  test.each([
    "127.0.0.1",
    "127.0.0.1:",
    "127.0.0.1:0",
    "127.0.0.1:65536",
    "0x7f.1:80",
    "2130706433:80",
    "host/x:80",
    "*:80",
    "user@host:80",
    "::1:80",
    "host:80:90",
  ])("W7 a listed host is in its plain spelling, with its port: %s is refused", (entry) => {
    expect(faultyNames({ SCRAPER_ALLOWED_CALLBACKS: entry })).toEqual(["SCRAPER_ALLOWED_CALLBACKS"]);
  });

  test.each(["localhost:80", "127.8.8.8:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "a.localhost:80", "0.0.0.0:80"])(
    "W7 a loopback receiver is for development and test only: %s",
    (entry) => {
      expect(faultyNames({ SCRAPER_ALLOWED_CALLBACKS: entry })).toEqual([]);
      expect(faultyNames({ ...PRODUCTION, SCRAPER_ALLOWED_CALLBACKS: entry })).toContain("SCRAPER_ALLOWED_CALLBACKS");
      expect(faultyNames({ ...PRODUCTION, SCRAPER_ALLOWED_CALLBACKS: "10.1.2.3:80" })).not.toContain(
        "SCRAPER_ALLOWED_CALLBACKS",
      );
    },
  );

  test.each(["169.254.169.254:80", "metadata.google.internal:80", "[fd00:ec2::254]:80", "[::ffff:169.254.169.254]:80"])(
    "W7 a metadata address is never a receiver: %s",
    (entry) => {
      expect(faultyNames({ SCRAPER_ALLOWED_CALLBACKS: entry })).toEqual(["SCRAPER_ALLOWED_CALLBACKS"]);
    },
  );

  test("a callback's try and its commit fit into a lease where it matters", () => {
    const name: SettingName = "SCRAPER_CALLBACK_TIMEOUT_MS";
    expect(faultyNames({ ...PRODUCTION, [name]: "45000" })).toContain(name);
    expect(faultyNames({ ...PRODUCTION, [name]: "44999" })).not.toContain(name);
    expect(faultyNames({ SCRAPER_LEASE_SECONDS: "4" })).toEqual([]);
  });

  test("the internal port replaces every default port, and the listen host follows the environment", () => {
    expect(parse().internal.ports).toEqual({
      intake: 8791,
      fetching: 8792,
      artifacts: 8793,
      callbacks: 8794,
      retention: 8795,
    });
    expect(parse({ SCRAPER_INTERNAL_PORT: "0" }).internal.ports.callbacks).toBe(0);
    expect(parse().internal.host).toBe("127.0.0.1");
  });

  test("the Redis prefix carries a hash tag, and the user agent the contact", () => {
    const settings = parse({ SCRAPER_REDIS_PREFIX: "shop", SCRAPER_CONTACT: "https://example.com/bot" });
    expect(settings.redis.prefix).toBe("{shop}");
    expect(settings.callbacks.userAgent).toBe("KebleScraper/0.1 (+https://example.com/bot)");
  });
});

describe("the ways out", () => {
  const DEPLOYED = ["staging", "production"].map((name) => ({ ...PRODUCTION, SCRAPER_ENVIRONMENT: name }));
  const PROXY = "http://user:canary-password@proxy.example:8080";

  test("every route but DIRECT is off unless it is configured", () => {
    const { routes } = parse();
    expect(routes.DATACENTER.proxy).toBeNull();
    expect(routes.RESIDENTIAL.proxy).toBeNull();
    expect(routes.UNLOCKER.api).toBeNull();
    expect(routes.CLOUDFLARE_RENDER.api).toBeNull();
    expect(routes.LOCAL_RENDER.browser).toBeNull();
    expect(routes.DIRECT).toEqual({ requestsPerSecond: null, concurrency: null });
  });

  test("a route that is configured has its credentials, rate, price and caps", () => {
    const { routes } = parse({
      SCRAPER_RESIDENTIAL_PROXY_URL: `${PROXY}/`,
      SCRAPER_RESIDENTIAL_PROXY_PROVIDER: "BRIGHT_DATA",
      SCRAPER_RESIDENTIAL_PROXY_TARGET: "NAME",
      SCRAPER_RESIDENTIAL_PROXY_CA_FILE: "/etc/ca.pem",
      SCRAPER_RESIDENTIAL_REQUESTS_PER_SECOND: "0.5",
      SCRAPER_RESIDENTIAL_DAILY_CAP_MICROS: "0",
      SCRAPER_RESIDENTIAL_PRICE_MICROS: "8000000",
      SCRAPER_UNLOCKER_API_KEY: "canary-api-key",
      SCRAPER_UNLOCKER_ZONE: "unlocker_1",
      SCRAPER_CLOUDFLARE_ACCOUNT_ID: "0123456789abcdef0123456789abcdef",
      SCRAPER_CLOUDFLARE_API_TOKEN: "canary-api-token",
      SCRAPER_LOCAL_RENDER: "on",
    });
    expect(routes.RESIDENTIAL).toEqual({
      requestsPerSecond: 0.5,
      concurrency: null,
      priceMicros: 8_000_000,
      dailyCapMicros: 0,
      monthlyCapMicros: null,
      proxy: { url: PROXY, provider: "BRIGHT_DATA", target: "NAME", caFile: "/etc/ca.pem" },
    });
    expect(routes.UNLOCKER.api).toEqual({
      url: "https://api.brightdata.com",
      apiKey: "canary-api-key",
      zone: "unlocker_1",
    });
    expect(routes.CLOUDFLARE_RENDER.api?.url).toBe("https://api.cloudflare.com/client/v4");
    expect(routes.LOCAL_RENDER.browser).toEqual({
      executablePath: null,
      jobsMax: 100,
      memoryBytesMax: 2_147_483_648,
    });
  });

  test.each<readonly [SettingName, string, SettingName]>([
    ["SCRAPER_UNLOCKER_API_KEY", "canary-api-key", "SCRAPER_UNLOCKER_ZONE"],
    ["SCRAPER_UNLOCKER_ZONE", "unlocker_1", "SCRAPER_UNLOCKER_API_KEY"],
    ["SCRAPER_CLOUDFLARE_ACCOUNT_ID", "0".repeat(32), "SCRAPER_CLOUDFLARE_API_TOKEN"],
    ["SCRAPER_CLOUDFLARE_API_TOKEN", "canary-api-token", "SCRAPER_CLOUDFLARE_ACCOUNT_ID"],
    ["SCRAPER_DATACENTER_PROXY_CA_FILE", "/ca.pem", "SCRAPER_DATACENTER_PROXY_URL"],
    ["SCRAPER_RESIDENTIAL_PROXY_CA_FILE", "/ca.pem", "SCRAPER_RESIDENTIAL_PROXY_URL"],
  ])("O1 half of a route's credentials is refused, and the missing half named: %s", (given, value, missing) => {
    expect(faultyNames({ [given]: value })).toEqual([missing]);
    expect(faultyNames({ [given]: value, [missing]: " \t" })).toEqual([missing]);
    expect(faultyNames({ [given]: "  " })).toEqual([]);
  });

  test("W8 the developer's proxy and resolver come as a pair, in development and test only", () => {
    const proxy: SettingName = "SCRAPER_DEVELOPMENT_HTTP_PROXY_URL";
    const resolver: SettingName = "SCRAPER_DEVELOPMENT_DNS_OVER_HTTPS_URL";
    const both = { [proxy]: "http://127.0.0.1:3128", [resolver]: "https://dns.example/dns-query" };
    expect(parse(both).fetching.developmentEgress).toEqual({
      proxyUrl: "http://127.0.0.1:3128",
      dnsOverHttpsUrl: "https://dns.example/dns-query",
    });
    expect(parse({ ...both, SCRAPER_ENVIRONMENT: "development" }).fetching.developmentEgress).not.toBeNull();
    expect(faultyNames({ [proxy]: both[proxy] })).toEqual([resolver]);
    expect(faultyNames({ [resolver]: both[resolver] })).toEqual([proxy]);
    for (const deployed of DEPLOYED) {
      expect(faultyNames({ ...deployed, ...both })).toEqual(expect.arrayContaining([proxy, resolver]));
      expect(faultyNames({ ...deployed, [proxy]: both[proxy] })).toContain(proxy);
    }
  });

  test.each<SettingName>(["SCRAPER_UNLOCKER_URL", "SCRAPER_CLOUDFLARE_URL", "SCRAPER_DEVELOPMENT_DNS_OVER_HTTPS_URL"])(
    "credentials and names travel in the clear to this machine only, in development and test: %s",
    (name) => {
      const pair = name.includes("DNS") ? { SCRAPER_DEVELOPMENT_HTTP_PROXY_URL: "http://127.0.0.1:1" } : {};
      for (const loopback of ["http://127.0.0.1:8080/x", "http://[::1]:8080", "http://localhost"]) {
        expect(faultyNames({ ...pair, [name]: loopback })).toEqual([]);
        for (const deployed of DEPLOYED) expect(faultyNames({ ...deployed, [name]: loopback })).toContain(name);
      }
      for (const clear of ["http://api.example", "http://10.0.0.1", "http://127.0.0.1.example"]) {
        expect(faultyNames({ ...pair, [name]: clear })).toEqual([name]);
      }
      expect(faultyNames({ ...pair, [name]: "https://api.example/v4" })).toEqual([]);
      expect(faultyNames({ ...pair, [name]: "https://user:canary@api.example" })).toEqual([name]);
    },
  );

  test.each([
    "http://proxy.example:8080",
    "http://user@proxy.example:8080",
    "http://:canary@proxy.example:8080",
    "https://user:canary@proxy.example:8080",
    "socks5://user:canary@proxy.example:8080",
    "http://user:canary@proxy.example:8080/path",
    "http://user:canary@proxy.example:8080/?canary",
    "http://user:a%0d%0ab@proxy.example:8080",
    "user:canary@proxy.example:8080",
  ])("a proxy has user name and password, and nothing behind its port: %s is refused", (url) => {
    for (const route of ["DATACENTER", "RESIDENTIAL"]) {
      const name = `SCRAPER_${route}_PROXY_URL`;
      const parsed = parseSettings({ ...REQUIRED, [name]: url });
      expect(parsed.ok ? [] : parsed.faults.map((fault) => fault.name)).toEqual([name]);
      expect(parsed.ok ? "" : renderSettingsFaults(parsed.faults)).not.toContain("canary");
    }
  });

  test("whatever opens a supplier's account is marked as a secret", () => {
    for (const name of [
      "SCRAPER_DATACENTER_PROXY_URL",
      "SCRAPER_RESIDENTIAL_PROXY_URL",
      "SCRAPER_DEVELOPMENT_HTTP_PROXY_URL",
      "SCRAPER_UNLOCKER_API_KEY",
      "SCRAPER_CLOUDFLARE_API_TOKEN",
    ] as const) {
      expect(SETTINGS[name].secret, name).toBe(true);
    }
  });
});

describe("the page", () => {
  test("names every setting with its help, and marks secrets", () => {
    const page = renderSettingsPage();
    for (const [name, setting] of Object.entries(SETTINGS)) {
      const row = page.split("\n").find((line) => line.startsWith(`| \`${name}\` |`));
      expect(row, name).toContain(setting.help);
      expect(row?.includes("Secret."), name).toBe(setting.secret);
    }
  });

  test("names that look like ours and are not are listed", () => {
    expect(listUnknownSettings({ ...REQUIRED, SCRAPER_LEASE_SECOND: "1", PATH: "x" })).toEqual([
      "SCRAPER_LEASE_SECOND",
    ]);
  });
});
