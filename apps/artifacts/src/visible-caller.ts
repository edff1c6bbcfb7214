import type { Principal } from "@keble-scraper/contract";

/**
 * Whose artifacts a principal may see: its own caller's, or, for an operator, everybody's (null). A service without a caller
 * is a fault of the gateway, and must not read as "everybody's".
 */
export function visibleCaller(principal: Principal): string | null {
  if (principal.kind === "OPERATOR") return null;
  if (principal.callerId === null) throw new Error("a service principal without a caller");
  return principal.callerId;
}
