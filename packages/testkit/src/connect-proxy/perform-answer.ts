import type { Socket } from "node:net";
import type { ProxyAnswer } from "./proxy-answer.ts";

/** Does about a CONNECT what opens no tunnel. */
export function performAnswer(client: Socket, answer: Exclude<ProxyAnswer, { readonly do: "TUNNEL" }>): void {
  // A socket that nobody reads never notices that its peer closed.
  client.resume();
  switch (answer.do) {
    case "REFUSE": {
      const body = answer.body ?? "";
      const headers = { "Content-Length": String(Buffer.byteLength(body)), ...answer.headers };
      client.end(headText(answer.status, answer.reason ?? "Refused", headers) + body);
      return;
    }
    case "STAY_SILENT":
      return;
    case "DRIP_HEADERS": {
      client.write("HTTP/1.1 200 OK\r\n");
      const timer = setInterval(() => client.write("X: y\r\n"), 20);
      client.once("close", () => clearInterval(timer));
      return;
    }
    case "FLOOD_HEADERS": {
      client.write("HTTP/1.1 200 OK\r\n");
      const flood = (): void => {
        while (!client.destroyed && client.write("X-Flood: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"));
      };
      client.on("drain", flood);
      flood();
      return;
    }
    case "CLOSE":
      if (answer.by === "RST") client.resetAndDestroy();
      else client.end();
      return;
    case "WRITE":
      client.write(answer.bytes);
  }
}

/** A response's head as it is written. */
export function headText(status: number, reason: string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${reason}\r\n${lines.join("")}\r\n`;
}
