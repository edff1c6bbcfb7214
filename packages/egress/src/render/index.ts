export { findChromium, CHROMIUM_PLACES, ChromiumMissing } from "./find-chromium.ts";
export { createLocalRenderTransport, type LocalRenderOptions, type RenderBrowser } from "./local-render-transport.ts";
export { WAIT_UNTIL, type WaitUntil } from "./page-watch.ts";
export { renderBudgetBytes } from "./render-budget.ts";
export { BrowserCrashed } from "./render-page.ts";
