import { expect, test } from "vitest";
import { claimOwner } from "./claim-owner.ts";

/** A mark whose reads answer these, one after the other, whatever is put. */
function markThatReads(...answers: readonly (string | null)[]) {
  const left = [...answers];
  let puts = 0;
  return {
    get puts() {
      return puts;
    },
    put: () => {
      puts += 1;
      return Promise.resolve();
    },
    read: () => Promise.resolve(left.shift() ?? null),
  };
}

test("A4 an owner's mark that is there is returned and not put again", async () => {
  const mark = markThatReads("theirs", "theirs", "theirs");
  expect(await claimOwner(mark)).toBe("theirs");
  expect(mark.puts).toBe(0);
});

test.each([
  ["two owners", [null, "ours", "theirs"]],
  ["an owner and then none", [null, "ours", null]],
  ["none", [null, null, null]],
])("A4 a store that answers a claim with %s is refused", async (_, answers) => {
  const mark = markThatReads(...answers);
  await expect(claimOwner(mark)).rejects.toThrow("hold on to the owner's mark");
  expect(mark.puts).toBe(1);
});
