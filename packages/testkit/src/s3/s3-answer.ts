import type { Piece } from "./piece-keeper.ts";
import type { S3Refusal } from "./s3-refusal.ts";

/** What an operation answers, before it is written down for a dialect. */
export type S3Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: S3AnswerBody;
  /** An object's size, for the access log. */
  readonly objectBytes?: number;
};

/** NONE is no body, and no length either. `start` and `end` are both included. */
export type S3AnswerBody =
  | { readonly kind: "NONE" }
  | { readonly kind: "TEXT"; readonly text: string }
  | { readonly kind: "BYTES"; readonly pieces: readonly Piece[]; readonly start: number; readonly end: number };

/** Which service the server speaks like. */
export type S3Dialect = "S3" | "OSS";

/** An answer that is an XML document. */
export function xmlAnswer(root: string, content: string, status = 200): S3Answer {
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n<${root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${content}</${root}>`;
  return { status, headers: { "content-type": "application/xml" }, body: { kind: "TEXT", text } };
}

/** An answer without a body. */
export function emptyAnswer(status: number, headers: Readonly<Record<string, string>> = {}): S3Answer {
  return { status, headers, body: { kind: "NONE" } };
}

/** The error document of a refusal, as the dialect writes it. */
export function refusalDocument(refusal: S3Refusal, dialect: S3Dialect, requestId: string, resource: string): string {
  const own =
    dialect === "OSS"
      ? element("HostId", "oss.example") + element("EC", refusal.ec ?? "0000-00000000")
      : element("Resource", resource) + element("HostId", "host-id");
  const details = Object.entries(refusal.details).map(([name, value]) => element(name, value));
  const content = [element("Code", refusal.code), element("Message", refusal.message), ...details];
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error>${content.join("")}${element("RequestId", requestId)}${own}</Error>`;
}

/** One XML element with a text. */
export function element(name: string, text: string | number): string {
  return `<${name}>${escapeXml(String(text))}</${name}>`;
}

function escapeXml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
