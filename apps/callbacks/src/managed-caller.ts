import {
  type DetailedFailure,
  failed,
  type LocalFailure,
  localFailure,
  ok,
  type Principal,
  type Result,
} from "@keble-scraper/contract";

/** Whose endpoints and events a principal may manage: its own caller's, or, for an operator, everybody's (null). */
export function managedCaller(principal: Principal): Result<string | null, LocalFailure> {
  if (principal.kind === "OPERATOR") return ok(null);
  if (principal.callerId === null || !principal.scopes.includes("callbacks:manage")) {
    return failed(localFailure("FORBIDDEN"));
  }
  return ok(principal.callerId);
}

/** For whom an endpoint is registered: an operator has to say, a service may only name its own caller. */
export function registeredCaller(principal: Principal, named: string | undefined): Result<string, DetailedFailure> {
  const managed = managedCaller(principal);
  if (!managed.ok) return managed;
  const callerId = managed.value ?? named;
  if (callerId === undefined) {
    const details = [{ path: "callerId", message: "An operator has to name the caller." }];
    return failed({ ...localFailure("INVALID_REQUEST"), details });
  }
  if (named !== undefined && named !== callerId) return failed(localFailure("FORBIDDEN"));
  return ok(callerId);
}
