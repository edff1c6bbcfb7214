import type { CDPSession } from "playwright-core";
import { REFUSED_BYTES_MAX } from "../transport/refused-body.ts";
import { within } from "./within.ts";

const READ_BYTES = 64 * 1024;

/** A body that is refused is not worth more of the attempt's time than this. */
const READ_MS_MAX = 3_000;

/**
 * The first 256 KiB, decoded, of the response that waits under `requestId`, which afterwards can only be failed. What came
 * within three seconds counts; null when there is nothing to read.
 */
export async function readRefusedBody(session: CDPSession, requestId: string): Promise<Buffer | null> {
  const parts: Buffer[] = [];
  let total = 0;
  let isLate = false;
  const read = async (): Promise<void> => {
    const { stream } = await session.send("Fetch.takeResponseBodyAsStream", { requestId });
    while (total < REFUSED_BYTES_MAX && !isLate) {
      const { data, eof, base64Encoded } = await session.send("IO.read", { handle: stream, size: READ_BYTES });
      const part = Buffer.from(data, base64Encoded === true ? "base64" : "utf8");
      parts.push(part);
      total += part.length;
      if (eof) break;
    }
    await session.send("IO.close", { handle: stream });
  };
  // A response that has no body, or whose page is gone, leaves what was read so far.
  await within(
    READ_MS_MAX,
    read().catch(() => {}),
  );
  isLate = true;
  return total === 0 ? null : Buffer.concat(parts).subarray(0, REFUSED_BYTES_MAX);
}
