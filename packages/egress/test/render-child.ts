import { openRenderRig } from "./render-rig.ts";

/** Renders the page at the origin on the port it is given, and says when its browser is up. For a test that kills it. */
const port = Number(process.argv[2]);
const rig = await openRenderRig({ port } as never);
void rig.render("http://origin.example.com/wait");
process.stdout.write("rendering\n");
