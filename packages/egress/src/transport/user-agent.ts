/** The name that sites' robots.txt address us by. */
export const PRODUCT_TOKEN = "KebleScraper";

/** The User-Agent of a deployment that set none. */
export const DEFAULT_USER_AGENT = `${PRODUCT_TOKEN}/0.1 (self-hosted fetch service)`;
