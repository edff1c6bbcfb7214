import { SNIFF_BYTES_MAX } from "../content/sniff-type.ts";
import type { FailureKind } from "./failure-kind.ts";

/** Takes decoded chunks. What it returns is waited for, so a slow one slows the origin down; a throw is a fault. */
export type BodySink = { write(chunk: Buffer): Promise<void> | void };

/** One step of a body's way: the wire's end feeds the first, the last feeds the sink. It throws `StageFailure`, `EnoughRead`, or a fault. */
export type BodyStage = {
  /** Resolves when everything made of the chunk was taken by what follows. Never called again before that. */
  write(chunk: Buffer): Promise<void> | void;
  /** The body is complete. */
  end(): Promise<void> | void;
  /** The body will not be completed: lets go of what the stage holds. */
  abandon(): void;
};

/** A stage's failure that is the origin's doing. */
export class StageFailure extends Error {
  override name = "StageFailure";
  readonly kind: FailureKind;
  readonly nativeCode: string | null;
  constructor(kind: FailureKind, nativeCode: string | null = null) {
    super(kind);
    this.kind = kind;
    this.nativeCode = nativeCode;
  }
}

/** What a stage throws when it wants no more: the rest of the body is not read, and the exchange is done all the same. */
export class EnoughRead extends Error {
  override name = "EnoughRead";
}

/** The last stage: counts decoded bytes, keeps the first ones for sniffing, and hands all to the sink. */
export type SinkStage = BodyStage & {
  bytes(): number;
  /** The first decoded bytes, at most `SNIFF_BYTES_MAX`. */
  sample(): Buffer;
};

/** A sink that wants to know when the body is complete. */
export type EndingSink = BodySink & { end?(): Promise<void> | void };

/** A stage that lets at most `bytesMax` through to `sink`; the chunk that crosses the line is not passed on. */
export function createSinkStage(sink: EndingSink, bytesMax: number): SinkStage {
  const sample = createHeadOfBody(SNIFF_BYTES_MAX);
  let total = 0;
  return {
    bytes: () => total,
    sample: sample.read,
    write(chunk) {
      if (total + chunk.length > bytesMax) throw new StageFailure("DECODED_TOO_LARGE");
      total += chunk.length;
      sample.add(chunk);
      return sink.write(chunk);
    },
    end: () => sink.end?.(),
    abandon() {},
  };
}

/** A last stage that keeps the first bytes of a body and wants no more once it has `bytesMax` of them. */
export type PrefixStage = BodyStage & { read(): Buffer };

/** A prefix of at most `bytesMax` bytes; the body may be longer. */
export function createPrefixStage(bytesMax: number): PrefixStage {
  const prefix = createHeadOfBody(bytesMax);
  let total = 0;
  return {
    write(chunk) {
      prefix.add(chunk);
      total += chunk.length;
      if (total >= bytesMax) throw new EnoughRead();
    },
    end() {},
    abandon() {},
    read: prefix.read,
  };
}

/** The first bytes of a body. */
export type HeadOfBody = { add(chunk: Buffer): void; read(): Buffer };

/**
 * Keeps the first `bytesMax` bytes and forgets the rest. It keeps the chunks that they came in, at most one of them longer
 * than what is kept, and copies nothing of a body that came in one piece: what `read` gives is not to be written to.
 */
export function createHeadOfBody(bytesMax: number): HeadOfBody {
  const parts: Buffer[] = [];
  let kept = 0;
  return {
    add(chunk) {
      if (kept >= bytesMax) return;
      const part = kept + chunk.length <= bytesMax ? chunk : chunk.subarray(0, bytesMax - kept);
      parts.push(part);
      kept += part.length;
    },
    read() {
      const [first] = parts;
      return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts, kept);
    },
  };
}
