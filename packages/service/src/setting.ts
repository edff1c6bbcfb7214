/** The kinds of process that read settings. `up` starts the others and hands them theirs. */
export const PROCESS_KINDS = [
  "gateway",
  "intake",
  "fetching",
  "artifacts",
  "callbacks",
  "retention",
  "worker-fetch",
  "worker-render",
  "worker-proxy-health",
  "worker-callbacks",
  "worker-maintenance",
  "beat",
  "migrate",
  "up",
] as const;
export type ProcessKind = (typeof PROCESS_KINDS)[number];

/** Text that stands for an absent setting; `required` makes absence a fault, `none` makes the value `undefined`. */
export type Absence = { readonly text: string } | "required" | "none";

/** What a setting's text is read as. A parser answers `undefined` for a text it refuses; `expects` says what it wants. */
export type Setting<T, A extends Absence = Absence> = {
  readonly kind: string;
  /** How a fault and the settings page describe what is allowed, bounds included. */
  readonly expects: string;
  readonly parse: (text: string) => T | undefined;
  readonly absent: A;
  /** What the page says about absence when the bare default does not tell it. */
  readonly absentHelp?: string;
  readonly unit: string;
  readonly help: string;
  readonly secret: boolean;
  readonly readBy: readonly ProcessKind[] | "all";
};

type Common = { readonly help: string; readonly readBy: readonly ProcessKind[] | "all"; readonly absentHelp?: string };
type Secret = { readonly secret?: true };

/** A plain decimal: digits, at most six after the point; no sign, exponent or blank. */
const DECIMAL = /^\d{1,15}(?:\.\d{1,6})?$/u;
const WHOLE = /^\d{1,15}$/u;

/** A number within bounds; `whole` ones admit no fraction. */
export function number<const D extends number | "none">(
  options: Common & {
    readonly unit: string;
    readonly default: D;
    readonly min: number;
    readonly max: number;
    readonly whole?: true;
  },
): Setting<number, D extends "none" ? "none" : { readonly text: string }> {
  const { min, max, whole } = options;
  const absent = (options.default === "none" ? "none" : { text: String(options.default) }) as D extends "none"
    ? "none"
    : { readonly text: string };
  return {
    ...rest(options),
    kind: whole ? "integer" : "decimal",
    expects: `${whole ? "a whole number" : "a number"} from ${min} to ${max}`,
    unit: options.unit,
    secret: false,
    absent,
    parse(text) {
      const value = (whole ? WHOLE : DECIMAL).test(text) ? Number(text) : Number.NaN;
      return value >= min && value <= max ? value : undefined;
    },
  };
}

/** A whole number of things, from 1 unless `min` says otherwise. */
export function count<const D extends number | "none">(
  options: Common & { readonly unit: string; readonly default: D; readonly min?: number; readonly max: number },
): ReturnType<typeof number<D>> {
  return number<D>({ ...options, min: options.min ?? 1, whole: true });
}

/** A whole number of milliseconds, from 1 unless `min` says otherwise. */
export function milliseconds(
  options: Common & { readonly default: number; readonly min?: number; readonly max: number },
): ReturnType<typeof number<number>> {
  return number<number>({ ...options, min: options.min ?? 1, whole: true, unit: "milliseconds" });
}

/** Days, fractions and none at all included, up to a century. */
export function days(options: Common & { readonly default: number }): ReturnType<typeof number<number>> {
  return number<number>({ ...options, min: 0, max: 36_500, unit: "days" });
}

/** One of a closed set. */
export function choice<const T extends string, const D extends T | "required">(
  options: Common & { readonly values: readonly T[]; readonly default: D },
): Setting<T, D extends "required" ? "required" : { readonly text: string }> {
  return {
    ...rest(options),
    kind: "choice",
    expects: `one of ${options.values.join(", ")}`,
    unit: "",
    secret: false,
    absent: (options.default === "required" ? "required" : { text: options.default }) as D extends "required"
      ? "required"
      : { readonly text: string },
    parse: (text) => options.values.find((value) => value === text),
  };
}

/** A text that `accepts` lets through; `default` as for the other kinds. */
export function text<T, const D extends Absence>(
  options: Common &
    Secret & {
      readonly kind: string;
      readonly expects: string;
      readonly default: D;
      readonly parse: (text: string) => T | undefined;
    },
): Setting<T, D> {
  return {
    ...rest(options),
    kind: options.kind,
    expects: options.expects,
    unit: "",
    secret: options.secret ?? false,
    absent: options.default,
    parse: options.parse,
  };
}

function rest(options: Common): Common {
  return {
    help: options.help,
    readBy: options.readBy,
    ...(options.absentHelp === undefined ? {} : { absentHelp: options.absentHelp }),
  };
}
