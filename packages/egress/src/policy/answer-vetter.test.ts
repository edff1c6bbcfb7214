import { expect, test } from "vitest";
import { createAnswerVetter } from "./answer-vetter.ts";
import { vetAddresses } from "./vet-addresses.ts";

test("W6 an answer is judged by the reach it is used under, whatever it was judged by before", () => {
  const vet = createAnswerVetter({});
  for (let round = 0; round < 2; round += 1) {
    expect(vet(["10.0.0.5"], "LOCAL")).toMatchObject({ ok: true });
    expect(vet(["10.0.0.5"], "PUBLIC")).toMatchObject({ ok: false });
    expect(vet(["10.0.0.5"], "PRIVATE")).toMatchObject({ ok: true });
    expect(vet(["127.0.0.1"], "PRIVATE")).toMatchObject({ ok: false });
  }
});

test.each([[["93.184.216.34"]], [["93.184.216.34", "10.0.0.5"]], [["93.184.216.34 10.0.0.5"]], [[]], [["::1"]]])(
  "W6 %j is judged as without memory, first and again",
  (answers) => {
    const vet = createAnswerVetter({});
    for (let round = 0; round < 2; round += 1) {
      expect(vet(answers, "PUBLIC")).toEqual(vetAddresses(answers, { reach: "PUBLIC" }));
    }
    expect(vet(["93.184.216.34", "10.0.0.5"], "PUBLIC")).toMatchObject({ ok: false });
  },
);
