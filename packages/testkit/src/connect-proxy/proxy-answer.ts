/** What a proxy does about a CONNECT. Nothing but TUNNEL and REFUSE is what a working one does. */
export type ProxyAnswer =
  /**
   * Opens the tunnel. `to`: where it really leads; absent: where the proxy's options say. `glued`: bytes sent in one write
   * with the head, ahead of the target's own. `drip`: the head goes out byte by byte.
   */
  | {
      readonly do: "TUNNEL";
      readonly headers?: Readonly<Record<string, string>>;
      readonly to?: { readonly host: string; readonly port: number };
      readonly glued?: string | Buffer;
      readonly drip?: true;
    }
  /** Answers with a status other than 2xx and closes. */
  | {
      readonly do: "REFUSE";
      readonly status: number;
      readonly reason?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** Reads the CONNECT and says nothing. */
  | { readonly do: "STAY_SILENT" }
  /** One header line every 20 ms, for ever. */
  | { readonly do: "DRIP_HEADERS" }
  /** Header lines as fast as they are taken, for ever. */
  | { readonly do: "FLOOD_HEADERS" }
  /** Closes without an answer, by FIN or by RST. */
  | { readonly do: "CLOSE"; readonly by: "FIN" | "RST" }
  /** Writes exactly these bytes and stays open. */
  | { readonly do: "WRITE"; readonly bytes: string | Buffer };

/** How Bright Data writes an error down: its own headers, those it had before 2026-05, or Proxy-Status in its two documented shapes. */
export type BrightDataErrorStyle = "BRD" | "UNLOCKER" | "LUMINATI" | "PROXY_STATUS" | "PROXY_STATUS_UNQUOTED";

/** A refusal in Bright Data's words. */
export function brightDataRefusal(
  status: number,
  code: string,
  text = "refused",
  style: BrightDataErrorStyle = "BRD",
): ProxyAnswer {
  return { do: "REFUSE", status, reason: REASONS[code] ?? "Error", headers: headersOf(status, code, text, style) };
}

/** The refusal of an account that nobody verified: its code stands in the body only. */
export function unverifiedAccountRefusal(
  code: "kyc_required" | "business_account_required" = "kyc_required",
): ProxyAnswer {
  const body = JSON.stringify({
    error: {
      code,
      message: "verify first",
      action: "verify",
      alternatives: ["datacenter"],
      docs: "https://docs.example",
    },
  });
  return { do: "REFUSE", status: 403, reason: "Forbidden", headers: { "Content-Type": "application/json" }, body };
}

/** Native reason phrases where the vendor documents one. */
const REASONS: Readonly<Record<string, string>> = {
  client_10000: "Auth failed",
  client_10001: "Invalid Auth",
  client_10002: "Zone not found",
  client_10010: "Proxy Authentication Required",
};

function headersOf(status: number, code: string, text: string, style: BrightDataErrorStyle): Record<string, string> {
  switch (style) {
    case "BRD":
      return { "x-brd-err-code": code, "x-brd-error": text, "x-brd-err-msg": text };
    case "UNLOCKER":
      return { "x-brd-error-code": code, "x-brd-error": text };
    case "LUMINATI":
      return { "x-luminati-error-code": code, "x-luminati-error": text };
    case "PROXY_STATUS":
      return {
        "Proxy-Status": `brd.superproxy.io; received-status=${status}; error="http_request_denied"; details="${code}: ${text}"`,
      };
    case "PROXY_STATUS_UNQUOTED":
      return {
        "Proxy-Status": `brd.superpoxy.io; received-status=${status}; error=destination_ip_unroutable; details="${code.replace("_", "-")}: ${text}"`,
      };
  }
}
