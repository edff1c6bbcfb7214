import { FAILURES } from "@keble-scraper/contract";

/** The page of every failure there is, from the one table that the code reads. */
export function renderFailuresPage(): string {
  const local = Object.entries(FAILURES.LOCAL).map(([code, row]) =>
    tableRow([code, row.origin, row.disposition, "", row.httpStatus, row.text, row.help]),
  );
  const upstream = Object.entries(FAILURES.UPSTREAM).map(([code, row]) =>
    tableRow([code, row.origin, row.disposition, row.action, row.httpStatus, row.text, row.help]),
  );
  return [
    "# Failures",
    "",
    "Generated from `packages/contract/src/failure-table.ts` by `npm run generate`; do not edit.",
    "",
    "One family, told apart by `kind`. Origin, disposition and action are the table's defaults: the place that classifies",
    "may name another from the same closed sets. HTTP is the status of our own envelope, never the target's.",
    "`disposition` says what to do next: `RETRY` the same route, `RETRY_NEXT_ROUTE`, `RETRY_AT` the given time and not",
    "before, `TERMINAL`. A client treats a code it does not know by its disposition.",
    "",
    "## LOCAL: the request, its policy, our capacity or our own parts",
    "",
    ...table(local),
    "",
    "## UPSTREAM: the target or a supplier",
    "",
    ...table(upstream),
    "",
  ].join("\n");
}

function table(rows: readonly string[]): string[] {
  return [
    tableRow(["code", "origin", "disposition", "action", "HTTP", "text", "what to do"]),
    tableRow(Array.from({ length: 7 }, () => "---")),
    ...rows,
  ];
}

function tableRow(cells: readonly (string | number)[]): string {
  return `| ${cells.map((cell) => String(cell).replaceAll("|", String.raw`\|`)).join(" | ")} |`;
}
