/** One member of a Proxy-Status field (RFC 9209): what one of the proxies on the way says. Null: it said nothing. */
export type ProxyStatus = {
  /** The error's registered type, such as `connection_timeout`, in lower case. */
  readonly error: string | null;
  readonly details: string | null;
  /** The name or address that this proxy went on to. */
  readonly nextHop: string | null;
};

/**
 * Reads a Proxy-Status field's members, the proxy nearest to the target first. Reads on where a strict parser would give
 * up: vendors write types without quotes, and texts too.
 */
export function parseProxyStatus(field: string): readonly ProxyStatus[] {
  return splitOutsideQuotes(field, ",").map((member) => {
    const parameters = new Map(
      splitOutsideQuotes(member, ";")
        .slice(1)
        .map((parameter) => {
          const equals = parameter.indexOf("=");
          const name = (equals === -1 ? parameter : parameter.slice(0, equals)).trim().toLowerCase();
          return [name, equals === -1 ? "" : unquote(parameter.slice(equals + 1).trim())] as const;
        }),
    );
    return {
      error: parameters.get("error")?.toLowerCase() ?? null,
      details: parameters.get("details") ?? null,
      nextHop: parameters.get("next-hop") ?? null,
    };
  });
}

function splitOutsideQuotes(text: string, separator: "," | ";"): string[] {
  const parts: string[] = [];
  let isQuoted = false;
  let from = 0;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (isQuoted && character === "\\") index += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && character === separator) {
      parts.push(text.slice(from, index));
      from = index + 1;
    }
  }
  return [...parts, text.slice(from)];
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1).replace(/"$/, "").replace(/\\(.)/g, "$1") : value;
}
