import { z } from "zod";
import { Principal } from "../principal.ts";
import { Stats } from "../stats.ts";
import { resultOf } from "./result-of.ts";

/** retention.getStats: for operators. */
export const GetStatsCall = z.strictObject({ principal: Principal });
export type GetStatsCall = z.infer<typeof GetStatsCall>;
export const GetStatsAnswer = resultOf(Stats);
export type GetStatsAnswer = z.infer<typeof GetStatsAnswer>;
