import { expect, test } from "vitest";
import { orderAddresses } from "./order-addresses.ts";

test.each([
  [[], []],
  [["1.1.1.1"], ["1.1.1.1"]],
  [
    ["1.1.1.1", "2.2.2.2"],
    ["1.1.1.1", "2.2.2.2"],
  ],
  [
    ["1.1.1.1", "2::1", "2.2.2.2", "2::2", "3.3.3.3"],
    ["2::1", "1.1.1.1", "2::2", "2.2.2.2", "3.3.3.3"],
  ],
  [
    ["1.1.1.1", "2::1", "2::2", "2::3"],
    ["2::1", "1.1.1.1", "2::2", "2::3"],
  ],
])("W6 %j is tried as %j", (addresses, order) => {
  expect(orderAddresses(addresses)).toEqual(order);
});
