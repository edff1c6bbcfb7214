export { createScraperClient, type ScraperClient } from "./create-scraper-client.ts";
export { ScraperError, type ScraperFailure } from "./scraper-error.ts";
