import { findFreePort, isPortFree } from "@keble-scraper/local-servers";
import { type SampleSite, startSampleSite } from "./sample-site.ts";
import { readStateFile, type StateDirectory, writeStateFile } from "./state-directory.ts";

/** The site on the ports of the last start when they are free, so that what was registered then still points here. */
export async function openSampleSite(state: StateDirectory): Promise<SampleSite> {
  const kept = readStateFile(state.site) ?? {};
  const choose = async (name: string) => {
    const port = Number(kept[name] ?? "0");
    return port > 0 && (await isPortFree(port)) ? port : findFreePort();
  };
  const site = await startSampleSite({ origin: await choose("origin"), receiver: await choose("receiver") });
  writeStateFile(state.site, { origin: String(site.originPort), receiver: String(site.receiverPort) });
  return site;
}
