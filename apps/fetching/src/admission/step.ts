import type { HopVerdict } from "@keble-scraper/egress";

/** What a step of a hop's admission says. ON: go to the next step. AGAIN: begin anew at the first one. Else the hop's verdict. */
export type Step = HopVerdict | "ON" | "AGAIN";
