import { type Principal, type ServiceResult, failed, localFailure } from "@keble-scraper/contract";

/** Answers an operator; anybody else gets FORBIDDEN, whatever the gateway let through. */
export async function forOperators<T>(
  principal: Principal,
  answer: () => Promise<ServiceResult<T>>,
): Promise<ServiceResult<T>> {
  return principal.kind === "OPERATOR" ? answer() : failed(localFailure("FORBIDDEN"));
}
