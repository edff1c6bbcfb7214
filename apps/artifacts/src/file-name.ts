import { create } from "content-disposition";

const NAME_CHARS_MAX = 100;
/** Names that Windows takes for devices, with or without an extension. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/i;

/**
 * The file name offered for bytes that came from `url`: the last part of its path, of letters, digits, dot, hyphen and
 * underscore alone. No path, no leading dot, no control or direction character; never the query, which may hold a token.
 * `artifact` when nothing is left.
 */
export function toFileName(url: string): string {
  const name = decoded(lastSegment(url))
    .normalize("NFC")
    .replace(/[^\p{L}\p{N}._-]+/gu, "_")
    .replace(/^[._-]+/, "");
  const short = Array.from(name)
    .slice(-NAME_CHARS_MAX)
    .join("")
    .replace(/^[._-]+|[._-]+$/g, "");
  if (short === "") return "artifact";
  return DEVICE_NAME.test(short) ? `artifact-${short}` : short;
}

/** The `Content-Disposition` of a download, in ASCII: always an attachment, whatever the type. */
export function toDisposition(url: string): string {
  const name = toFileName(url);
  return create(name, { type: "attachment", fallback: name.replace(/[^ -~]/g, "_") });
}

function lastSegment(url: string): string {
  const path = URL.canParse(url) ? new URL(url).pathname : "";
  return path.slice(path.lastIndexOf("/") + 1);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
