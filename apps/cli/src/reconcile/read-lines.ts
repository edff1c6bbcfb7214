/** One line without its end; `text` null: it was longer than the most that is read. */
export type LogTextLine = { readonly number: number; readonly text: string | null };

/** The longest line that is read, in bytes. A MinIO entry with full headers is a tenth of it. */
export const LINE_BYTES_MAX = 65_536;

const LINE_FEED = 10;

/** The lines of a stream, one at a time: however long a line is, no more of it is held than the most that is read. */
export async function* readLines(
  source: AsyncIterable<Uint8Array>,
  lineBytesMax: number = LINE_BYTES_MAX,
): AsyncGenerator<LogTextLine> {
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let number = 0;
  const take = (): LogTextLine => {
    number += 1;
    const text = heldBytes > lineBytesMax ? null : Buffer.concat(held).toString("utf8").replace(/\r$/, "");
    held = [];
    heldBytes = 0;
    return { number, text };
  };
  const hold = (piece: Uint8Array): void => {
    heldBytes += piece.byteLength;
    if (heldBytes <= lineBytesMax) held.push(piece);
    else held = [];
  };
  for await (const chunk of source) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      hold(chunk.subarray(from, end));
      from = end + 1;
      yield take();
    }
    if (from < chunk.byteLength) hold(chunk.subarray(from));
  }
  if (heldBytes > 0) yield take();
}
