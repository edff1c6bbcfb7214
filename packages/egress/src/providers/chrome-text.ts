/** How many bytes before its `<pre>` Chrome's own wrapper has at most; it has about a hundred. */
const WRAPPER_CHARS_MAX = 4_096;

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  "#39": "'",
  nbsp: "\u00a0",
};

/**
 * A text file from the DOM that Chrome shows it in: the content of its `<pre>`, unescaped. What is no such DOM comes back
 * as it is.
 */
export function unwrapChromeText(dom: Buffer): Buffer {
  const text = dom.toString("utf8");
  const start = /^[^]{0,4096}?<body[^>]*>\s*<pre[^>]*>/iu.exec(text.slice(0, 2 * WRAPPER_CHARS_MAX));
  if (start === null) return dom;
  const from = start[0].length;
  const end = text.indexOf("</pre>", from);
  const inner = text.slice(from, end === -1 ? text.length : end);
  return Buffer.from(inner.replace(/&(amp|lt|gt|quot|#39|nbsp);/gu, (whole, name: string) => ENTITIES[name] ?? whole));
}
