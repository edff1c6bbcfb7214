import fc from "fast-check";
import { expect, test } from "vitest";
import { type Cidr, parseCidr } from "./cidr.ts";
import { isPublicAddress } from "./classify-address.ts";
import { ownAddresses } from "./own-addresses.ts";
import { vetAddresses } from "./vet-addresses.ts";

function cidrs(...texts: string[]): Cidr[] {
  return texts.map((text) => parseCidr(text)).filter((cidr) => cidr !== null);
}

test.each([
  [["93.184.216.34", "10.0.0.5"], "10.0.0.0/8 (private)"],
  [["10.0.0.5", "93.184.216.34"], "10.0.0.0/8 (private)"],
  [["93.184.216.34", "::1"], "::1/128 (loopback)"],
  [["127.0.0.1", "2606:4700:4700::1111"], "127.0.0.0/8 (loopback)"],
  [["::ffff:10.0.0.1"], "::ffff:0:0/96 (ipv4-mapped)"],
  [["::7f00:1"], "::/96 (ipv4-compatible)"],
  [["64:ff9b::a00:1"], "64:ff9b::/96 (nat64-wkp)"],
  [["93.184.216.34", "not an address"], "malformed"],
])("W6 one answer that is not public refuses the name: %j", (answers, block) => {
  expect(vetAddresses(answers)).toEqual({ ok: false, reason: "address", block, hint: null });
});

test("W6 all answers are vetted though at most eight are used", () => {
  const many = Array.from({ length: 500 }, (_, index) => `93.184.${Math.floor(index / 250)}.${index % 250}`);
  expect(vetAddresses(many)).toEqual({ ok: true, addresses: many.slice(0, 8) });
  expect(vetAddresses([...many, "10.0.0.1"])).toMatchObject({ ok: false, reason: "address" });
});

test.each([
  [["1.1.1.1"], ["1.1.1.1"]],
  [
    ["1.1.1.1", "2.2.2.2"],
    ["1.1.1.1", "2.2.2.2"],
  ],
  [
    ["1.1.1.1", "1.0.0.1", "1.1.1.1", "2606:4700::1", "2606:4700::2", "2606:4700::3"],
    ["2606:4700::1", "1.1.1.1", "2606:4700::2", "1.0.0.1", "2606:4700::3"],
  ],
  [
    ["1.1.1.1", "2606:4700::1", "1.0.0.1", "2606:4700::2", "8.8.8.8"],
    ["2606:4700::1", "1.1.1.1", "2606:4700::2", "1.0.0.1", "8.8.8.8"],
  ],
])("W6 %j is tried as %j: both families get their turn, and repeats count once", (answers, addresses) => {
  expect(vetAddresses(answers)).toEqual({ ok: true, addresses });
});

test("no answer is a reason of its own", () => {
  expect(vetAddresses([])).toMatchObject({ ok: false, reason: "no_address" });
});

test("a fake-IP resolver is recognised, and allowed by the operator for answers only", () => {
  expect(vetAddresses(["198.18.0.7"])).toMatchObject({ ok: false, hint: "FAKE_IP_RESOLVER" });
  expect(vetAddresses(["198.18.0.7", "10.0.0.1"])).toMatchObject({ ok: false, hint: null });
  const allowResolvedCidrs = cidrs("198.18.0.0/15", "169.254.0.0/16");
  expect(vetAddresses(["198.18.0.7"], { allowResolvedCidrs })).toMatchObject({ ok: true });
  expect(vetAddresses(["169.254.169.254"], { allowResolvedCidrs })).toMatchObject({ ok: false });
  expect(vetAddresses(["198.18.0.7"], { allowResolvedCidrs, denyCidrs: cidrs("198.18.0.7") })).toMatchObject({
    ok: false,
  });
});

test.each([
  ["10.0.0.5", ["PRIVATE", "LOCAL"]],
  ["192.168.1.1", ["PRIVATE", "LOCAL"]],
  ["100.64.0.1", ["PRIVATE", "LOCAL"]],
  ["fd12::1", ["PRIVATE", "LOCAL"]],
  ["127.0.0.1", ["LOCAL"]],
  ["::1", ["LOCAL"]],
  ["0.0.0.0", ["LOCAL"]],
  ["::ffff:127.0.0.1", ["LOCAL"]],
  ["93.184.216.34", ["PUBLIC", "PRIVATE", "LOCAL"]],
  ["169.254.169.254", []],
  ["169.254.170.2", []],
  ["100.100.100.200", []],
  ["168.63.129.16", []],
  ["192.0.0.192", []],
  ["fd00:ec2::254", []],
  ["fd20:ce::254", []],
  ["fd00:42::42", []],
  ["fe80::a9fe:a9fe", []],
  ["::ffff:169.254.169.254", []],
  ["::a9fe:a9fe", []],
  ["64:ff9b::a9fe:a9fe", []],
  ["2002:a9fe:a9fe::", []],
] as const)("W7 %s is within reach of %j only", (address, reaches) => {
  const within = (["PUBLIC", "PRIVATE", "LOCAL"] as const).filter((reach) => vetAddresses([address], { reach }).ok);
  expect(within).toEqual(reaches);
});

test("own addresses are refused unless the operator listed the receiver", () => {
  const info = { netmask: "", mac: "", internal: false, cidr: null };
  const denyCidrs = ownAddresses({
    eth0: [
      { ...info, family: "IPv4", address: "93.184.216.34" },
      { ...info, family: "IPv6", address: "2606:4700::1", scopeid: 0 },
    ],
    gone: undefined,
  });
  expect(vetAddresses(["93.184.216.34"], { denyCidrs })).toMatchObject({ ok: false });
  expect(vetAddresses(["2606:4700::1"], { denyCidrs })).toMatchObject({ ok: false });
  expect(vetAddresses(["93.184.216.34"], { denyCidrs, reach: "PRIVATE" })).toMatchObject({ ok: true });
  expect(vetAddresses(["93.184.216.35"], { denyCidrs })).toMatchObject({ ok: true });
});

test("whatever is accepted as public is public, in any mix", () => {
  expect.hasAssertions();
  const answers = fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom("1.1.1.1", "2606:4700::1")), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(answers, (ips) => {
      const vetted = vetAddresses(ips);
      expect(vetted.ok).toBe(ips.length > 0 && ips.every((ip) => isPublicAddress(ip)));
    }),
  );
});
