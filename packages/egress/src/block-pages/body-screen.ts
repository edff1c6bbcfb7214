import { type BodySink, EnoughRead } from "../transport/body-stage.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { type BlockPage, blockScreen, detectBlockBody } from "./detect-block-page.ts";

/**
 * A sink that holds the first bytes of a page back until it is known to be no wall's, so that nothing of a wall's page
 * reaches the sink behind it.
 */
export type BodyScreen = BodySink & {
  /** The body is complete. Throws `EnoughRead`, as `write` does, when it was a wall's. */
  end(): Promise<void> | void;
  /** The wall's page, once it was found. */
  found(): { readonly page: BlockPage; readonly bytes: Buffer } | null;
};

/**
 * A screen before `sink`; null where no wall's page looks like this head. It keeps the chunks themselves, at most 64 KiB of
 * them, copies nothing of an ordinary page that came in one piece, and looks once.
 */
export function createBodyScreen(head: ResponseHead, sink: BodySink): BodyScreen | null {
  const { httpStatus, headers } = head;
  if (!isPage(head)) return null;
  const { bytes: holdBytesMax, isLargeOther } = blockScreen(httpStatus);
  if (holdBytesMax === 0 || (isLargeOther && (head.declaredBytes ?? 0) > holdBytesMax)) return null;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let isOpen = false;
  let found: { readonly page: BlockPage; readonly bytes: Buffer } | null = null;

  const letThrough = (): Promise<void> | void => {
    const [first] = held;
    if (first !== undefined) {
      const bytes = held.length === 1 ? first : Buffer.concat(held, heldBytes);
      const page = detectBlockBody({ httpStatus, headers, sample: bytes });
      if (page !== null) {
        found = { page, bytes: Buffer.from(bytes) };
        held = [];
        throw new EnoughRead();
      }
    }
    isOpen = true;
    const chunks = held;
    held = [];
    return writeAll(sink, chunks);
  };

  return {
    write(chunk) {
      if (isOpen) return sink.write(chunk);
      held.push(chunk);
      heldBytes += chunk.length;
      if (heldBytes > holdBytesMax) return letThrough();
    },
    end() {
      if (!isOpen) return letThrough();
    },
    found: () => found,
  };
}

/** HTML of any status, and JSON of an error: scripts are refused in it. What is not declared is no wall's page. */
function isPage(head: ResponseHead): boolean {
  const type = head.value("content-type");
  if (type === null) return false;
  return (
    /^\s*(?:text\/html|application\/xhtml\+xml)\b/i.test(type) || (head.httpStatus >= 400 && /json|plain/i.test(type))
  );
}

/** Waits for a chunk only where the sink asks to. */
function writeAll(sink: BodySink, chunks: readonly Buffer[]): Promise<void> | void {
  for (const [index, chunk] of chunks.entries()) {
    const taken = sink.write(chunk);
    if (taken !== undefined) return taken.then(() => writeAll(sink, chunks.slice(index + 1)));
  }
}
