import { z } from "zod";
import {
  CallbackEndpoint,
  CallbackEndpointPage,
  CallbackEndpointQuery,
  PatchCallbackEndpoint,
  RegisterCallbackEndpoint,
  RegisteredCallbackEndpoint,
} from "../callback-endpoint.ts";
import { CallbackEventDetail, CallbackEventPage, CallbackEventQuery } from "../callback-event.ts";
import { Id } from "../id.ts";
import { Principal } from "../principal.ts";
import { resultOf } from "./result-of.ts";

/** callbacks.registerEndpoint: CONFLICT when the caller has an endpoint of that name. */
export const RegisterEndpointCall = z.strictObject({ principal: Principal, input: RegisterCallbackEndpoint });
export type RegisterEndpointCall = z.infer<typeof RegisterEndpointCall>;
export const RegisterEndpointAnswer = resultOf(RegisteredCallbackEndpoint);
export type RegisterEndpointAnswer = z.infer<typeof RegisterEndpointAnswer>;

/** callbacks.listEndpoints: a service sees its own caller's, whatever `query.callerId` says. */
export const ListEndpointsCall = z.strictObject({ principal: Principal, query: CallbackEndpointQuery });
export type ListEndpointsCall = z.infer<typeof ListEndpointsCall>;
export const ListEndpointsAnswer = resultOf(CallbackEndpointPage);
export type ListEndpointsAnswer = z.infer<typeof ListEndpointsAnswer>;

/** callbacks.getEndpoint. */
export const GetEndpointCall = z.strictObject({ principal: Principal, id: Id });
export type GetEndpointCall = z.infer<typeof GetEndpointCall>;
/** callbacks.patchEndpoint. */
export const PatchEndpointCall = z.strictObject({ principal: Principal, id: Id, patch: PatchCallbackEndpoint });
export type PatchEndpointCall = z.infer<typeof PatchEndpointCall>;
/** The answer to a read or a change of an endpoint. */
export const EndpointAnswer = resultOf(CallbackEndpoint);
export type EndpointAnswer = z.infer<typeof EndpointAnswer>;

/** callbacks.deleteEndpoint: CONFLICT while events are open, unless `force`. */
export const DeleteEndpointCall = z.strictObject({ principal: Principal, id: Id, force: z.boolean() });
export type DeleteEndpointCall = z.infer<typeof DeleteEndpointCall>;
export const DeleteEndpointAnswer = resultOf(z.null());
export type DeleteEndpointAnswer = z.infer<typeof DeleteEndpointAnswer>;

/** callbacks.listEvents. */
export const ListEventsCall = z.strictObject({ principal: Principal, query: CallbackEventQuery });
export type ListEventsCall = z.infer<typeof ListEventsCall>;
export const ListEventsAnswer = resultOf(CallbackEventPage);
export type ListEventsAnswer = z.infer<typeof ListEventsAnswer>;

/** callbacks.getEvent: with deliveries and tries. */
export const GetEventCall = z.strictObject({ principal: Principal, id: Id });
export type GetEventCall = z.infer<typeof GetEventCall>;
export const GetEventAnswer = resultOf(CallbackEventDetail);
export type GetEventAnswer = z.infer<typeof GetEventAnswer>;
