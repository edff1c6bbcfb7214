import { defineConfig } from "drizzle-kit";

export default defineConfig({ dialect: "postgresql", schema: "./dist/schema/index.js", out: "./migrations" });
