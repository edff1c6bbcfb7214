import { describe, expect, it } from "vitest";
import { toStackEnvironment } from "./stack-environment.ts";

const GIVEN = {
  environment: "development",
  state: { root: "/state", artifacts: "/state/artifacts" },
  secrets: { serviceToken: "token", secretKey: "key", ownerPassword: "o", appPassword: "a" },
  database: { url: "postgres://app", migrationUrl: "postgres://owner" },
  redisUrl: "redis://local",
  ports: { gateway: 1, downloads: 2, services: { intake: 3, fetching: 4, artifacts: 5, callbacks: 6, retention: 7 } },
  site: { originHostPort: "127.0.0.1:8", receiverHostPort: "127.0.0.1:9" },
} as const;

describe("toStackEnvironment", () => {
  it("tells every process where the others are", () => {
    expect(toStackEnvironment({ ...GIVEN, env: { PATH: "/bin" } })).toMatchObject({
      PATH: "/bin",
      SCRAPER_GATEWAY_PORT: "1",
      SCRAPER_INTAKE_URL: "http://127.0.0.1:3",
      SCRAPER_RETENTION_URL: "http://127.0.0.1:7",
      SCRAPER_LOCAL_ARTIFACT_BASE_URL: "http://127.0.0.1:2",
      SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: "127.0.0.1:8",
      SCRAPER_ALLOWED_CALLBACKS: "127.0.0.1:9",
      SCRAPER_SECRET_KEY: "key",
    });
  });

  it("adds to the user's lists, and leaves the user's token, key and store alone; blank ones count as absent", () => {
    const env = {
      SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: "a:1",
      SCRAPER_ALLOWED_CALLBACKS: " ",
      SCRAPER_SERVICE_TOKEN: "mine",
      SCRAPER_SECRET_KEY: "",
      SCRAPER_S3_ENDPOINT: "https://s3",
    };
    const made = toStackEnvironment({ ...GIVEN, env });
    expect(made).toMatchObject({
      SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: "a:1,127.0.0.1:8",
      SCRAPER_ALLOWED_CALLBACKS: "127.0.0.1:9",
      SCRAPER_SERVICE_TOKEN: "mine",
      SCRAPER_SECRET_KEY: "key",
    });
    expect(made).not.toHaveProperty("SCRAPER_LOCAL_ARTIFACT_DIRECTORY");
  });
});
