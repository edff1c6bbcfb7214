import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

test("no line is lost when a process exits right after it", async () => {
  const source = `
    import { createLogger } from ${JSON.stringify(new URL("../src/logger.ts", import.meta.url).href)};
    const logger = createLogger({ name: "child", level: "info" });
    for (let line = 1; line <= 500; line += 1) logger.info({ line }, "line.written");
    process.exit(0);`;
  const { stdout } = await run(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", source]);
  const lines = stdout.trimEnd().split("\n");
  expect(lines).toHaveLength(500);
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ name: "child", line: 500, msg: "line.written" });
});
