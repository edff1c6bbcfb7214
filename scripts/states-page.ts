import { DELIVERY_TRANSITIONS, JOB_TRANSITIONS } from "@keble-scraper/db";

type Transitions = Readonly<Record<string, Partial<Readonly<Record<string, readonly string[]>>>>>;

/** The page of the state machines, drawn from the transition tables that the commands are tested against. */
export function renderStatesPage(): string {
  return [
    "# States",
    "",
    "Generated from `db/src/machines/` by `npm run generate`; do not edit.",
    "",
    "An edge is named after the commands that make the transition. A pair without an edge never happens: the commands",
    "are tried on every ordered pair of states against a real Postgres. States without a way out are terminal.",
    "",
    ...section("Jobs", "WAITING, which readers see, is QUEUED with a due time in the future.", JOB_TRANSITIONS),
    ...section(
      "Deliveries",
      "One try of telling an endpoint about a job, repeated within its budget.",
      DELIVERY_TRANSITIONS,
    ),
  ].join("\n");
}

function section(title: string, text: string, transitions: Transitions): string[] {
  const states = Object.keys(transitions);
  const [first = ""] = states;
  const edges = Object.entries(transitions).flatMap(([from, targets]) =>
    Object.entries(targets).map(([to, commands]) => `  ${from} --> ${to}: ${(commands ?? []).join(", ")}`),
  );
  const ends = states.filter((state) => Object.keys(transitions[state] ?? {}).length === 0);
  return [
    `## ${title}`,
    "",
    text,
    "",
    "```mermaid",
    "stateDiagram-v2",
    `  [*] --> ${first}`,
    ...edges,
    ...ends.map((state) => `  ${state} --> [*]`),
    "```",
    "",
  ];
}
