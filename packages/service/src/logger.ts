import { type DestinationStream, type Logger as PinoLogger, destination, pino } from "pino";
import { redactText, redactValue } from "./redaction.ts";

/** pino's logger. Lines are JSON: `level`, `time`, `name`, the fields, `msg` (a `noun.verb_past` name). */
export type Logger = PinoLogger;

/** Line lengths before a write; small, so that a quiet process shows its lines at once. */
const MIN_LENGTH_BYTES = 0;

/**
 * A logger whose lines carry no credential, URL, body or provider payload, whatever is passed to it: fields are walked,
 * fields with a telling name are dropped, texts are scrubbed, and of an error only name, code, scrubbed message and stack
 * frames remain. Without a `destination` it writes to standard output asynchronously and flushes when the process exits.
 */
export function createLogger(options: {
  readonly name: string;
  readonly level: string;
  readonly destination?: DestinationStream;
}): Logger {
  const logger = pino(
    {
      level: options.level,
      base: { name: options.name },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      // The walk below serialises errors itself; pino's own would run before it and keep every field of an error.
      serializers: { err: keep, error: keep },
      formatters: {
        level: (label) => ({ level: label }),
        bindings: (bindings) => redactValue(bindings) as Record<string, unknown>,
        log: (fields) => redactValue(fields) as Record<string, unknown>,
      },
      hooks: {
        logMethod(args, method) {
          // pino would copy the message of a bare error into `msg` by itself.
          const [first, ...rest] = args as unknown as [unknown, ...unknown[]];
          const clean =
            first instanceof Error
              ? [{ err: first }, ...(rest.length > 0 ? rest.map(redactArgument) : [redactText(first.message)])]
              : typeof first === "string"
                ? [redactText(first), ...rest.map(redactArgument)]
                : [first, ...rest.map(redactArgument)];
          method.apply(this, clean as Parameters<typeof method>);
        },
      },
    },
    options.destination ?? destination({ dest: 1, sync: false, minLength: MIN_LENGTH_BYTES }),
  );
  return redactChildren(logger);
}

/** pino resets the formatter of bindings in children; loggers inherit from their parent, so this reaches all of them. */
function redactChildren(logger: Logger): Logger {
  const makeChild: unknown = Reflect.get(logger, "child");
  if (typeof makeChild !== "function") {
    return logger;
  }
  return Object.defineProperty(logger, "child", {
    value(this: Logger, bindings: object, childOptions?: object): unknown {
      return Reflect.apply(makeChild, this, [redactValue(bindings), childOptions]);
    },
  });
}

/** Resolves when the lines so far are handed to the operating system, or at once when there is nothing to wait for. */
export async function flushLogger(logger: Logger): Promise<void> {
  await new Promise<void>((resolve) => logger.flush(() => resolve()));
}

function keep(value: unknown): unknown {
  return value;
}

function redactArgument(value: unknown): unknown {
  return typeof value === "string" ? redactText(value) : redactValue(value);
}
