import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";

/** A loopback port that never answers a SYN: its process is stopped and its queue is full, so that the kernel drops more. */
export async function openBlackHole(): Promise<AsyncDisposable & { readonly port: number }> {
  const listen =
    "const s=require('net').createServer().listen({port:0,host:'127.0.0.1',backlog:1},()=>console.log(s.address().port))";
  const child: ChildProcess = spawn(process.execPath, ["-e", listen], { stdio: ["ignore", "pipe", "inherit"] });
  const fillers: Socket[] = [];
  const close = (): Promise<void> => {
    for (const socket of fillers) socket.destroy();
    child.kill("SIGKILL");
    return Promise.resolve();
  };
  try {
    const [line] = (await once(createInterface(child.stdout!), "line")) as [string];
    const port = Number(line);
    child.kill("SIGSTOP");
    for (let index = 0; index < 8; index += 1) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      fillers.push(socket);
    }
    await once(fillers[0]!, "connect");
    return { port, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
