import {
  type DetailedFailure,
  localFailure,
  type Principal,
  type PrincipalKind,
  type Scope,
} from "@keble-scraper/contract";

/**
 * Who may call a procedure: the kinds of principal, and the scope a service key needs (null: none would do). An operator
 * needs no scope.
 */
export type Access = { readonly kinds: readonly PrincipalKind[]; readonly scope: Scope | null };

/** Why a principal may not call it: FORBIDDEN, naming what is missing. Null: it may. */
export function findDenial(principal: Principal, access: Access): DetailedFailure | null {
  if (!access.kinds.includes(principal.kind)) {
    const kind = principal.kind === "OPERATOR" ? "a service's" : "an operator's";
    return denial(`This needs ${kind} key.`);
  }
  if (principal.kind === "SERVICE" && access.scope !== null && !principal.scopes.includes(access.scope)) {
    return denial(`This needs the scope ${access.scope}.`);
  }
  return null;
}

function denial(message: string): DetailedFailure {
  return { ...localFailure("FORBIDDEN"), details: [{ path: "", message }] };
}
