import type { FailureKind } from "./failure-kind.ts";

/** Takes decoded chunks. What it returns is waited for, so a slow one slows the origin down; a throw is a fault. */
export type BodySink = { write(chunk: Buffer): Promise<void> | void };

/** One step of a body's way: the wire's end feeds the first, the last feeds the sink. Errors it throws are `StageFailure`. */
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

/** The last stage: counts decoded bytes, keeps the first ones for sniffing, and hands all to the sink. */
export type SinkStage = BodyStage & {
  bytes(): number;
  /** The first decoded bytes, at most `SAMPLE_BYTES_MAX`. */
  sample(): Buffer;
};

/** Enough for the deepest signature that is looked for (tar, at 257) and for a charset in an HTML head (first 1,024). */
export const SAMPLE_BYTES_MAX = 4_100;

/** A stage that lets at most `bytesMax` through to `sink`; the chunk that crosses the line is not passed on. */
export function createSinkStage(sink: BodySink, bytesMax: number): SinkStage {
  let total = 0;
  let sampled = 0;
  const samples: Buffer[] = [];
  return {
    bytes: () => total,
    sample: () => Buffer.concat(samples, sampled),
    write(chunk) {
      if (total + chunk.length > bytesMax) throw new StageFailure("DECODED_TOO_LARGE");
      total += chunk.length;
      if (sampled < SAMPLE_BYTES_MAX) {
        const part = Buffer.from(chunk.subarray(0, SAMPLE_BYTES_MAX - sampled));
        samples.push(part);
        sampled += part.length;
      }
      return sink.write(chunk);
    },
    end() {},
    abandon() {},
  };
}
