import { customType, timestamp } from "drizzle-orm/pg-core";

/** A point in time with millisecond precision, the precision of the public API. */
export const time = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: "date" });

/** Raw bytes. */
export const bytes = customType<{ data: Buffer }>({ dataType: () => "bytea" });
