export { type BellListener, createBellListener } from "./bell-listener.ts";
export { type Bell, BELL_KINDS, type BellKind, createBell, WAITING_MAX } from "./bell.ts";
export { type ClaimLoop, type ClaimLoopOptions, createClaimLoop } from "./claim-loop.ts";
export { type Clock, SYSTEM_CLOCK } from "./clock.ts";
export type { Component } from "./component.ts";
export { type Container, createContainer } from "./container.ts";
export { createEndedAnnouncer, type EndedAnnouncer } from "./ended-announcer.ts";
export { HINT_CHANNELS } from "./hint-channels.ts";
export { type HealthCheck, type HealthReport, type HealthState, runHealthChecks } from "./health.ts";
export {
  createInternalClient,
  DependencyUnavailable,
  type InternalCallContext,
  type UnavailableReason,
} from "./internal-client.ts";
export { createInternalServer, type InternalServer } from "./internal-server.ts";
export { type CallContext, createProcedures, DEADLINE_HEADER, REQUEST_ID_HEADER } from "./internal-trpc.ts";
export type { AbortReason, Lease, RunControl } from "./lease-keeper.ts";
export { createLogger, flushLogger, type Logger } from "./logger.ts";
export { startPatiently } from "./patient-start.ts";
export { closeServer, listenAt } from "./http-listener.ts";
export { createHints, type Hints } from "./hints.ts";
export { FETCH_SLOTS_MAX } from "./fetching-setting-table.ts";
export { PROCESS_KINDS, type ProcessKind } from "./setting.ts";
export type { HostPort } from "./setting-parsers.ts";
export { type Environment, ENVIRONMENTS, type LogLevel, SETTINGS, type SettingName } from "./setting-table.ts";
export type { SettingsFault } from "./setting-values.ts";
export { renderSettingsPage } from "./settings-page.ts";
export {
  listUnknownSettings,
  type ParsedSettings,
  parseSettings,
  renderSettingsFaults,
  SERVICE_NAMES,
  type ServiceName,
  type Settings,
  type StoreSettings,
} from "./settings.ts";
export { createRepeater, type Repeater } from "./repeater.ts";
export { pause } from "./timeout.ts";
export { createSettleLane, type SettleLane } from "./settle-lane.ts";
export { NO_SIGNALS, type Signals } from "./signals.ts";
export type { ProxySettings, RouteMoney, RouteRate, RouteSettings } from "./route-settings.ts";
