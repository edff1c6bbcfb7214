import { BlockList, isIP } from "node:net";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, test } from "vitest";
import vectors from "../../fixtures/address-vectors.json" with { type: "json" };
import { IPV4_BLOCKS, IPV6_BLOCKS } from "./address-blocks.ts";
import { type Cidr, parseCidr } from "./cidr.ts";
import { classifyAddress, isPublicAddress } from "./classify-address.ts";
import { parseAddress } from "./parse-address.ts";

function cidrs(...texts: string[]): Cidr[] {
  return texts.map((text) => parseCidr(text)).filter((cidr) => cidr !== null);
}

/** A list of its own for each family: one IPv4-mapped subnet in a shared list would match every IPv4. */
function createSecondOpinion(): (ip: string) => boolean {
  const denied4 = new BlockList();
  const denied6 = new BlockList();
  const allowed6 = new BlockList();
  for (const { label } of IPV4_BLOCKS) addBlock(denied4, label, "ipv4");
  for (const { label } of IPV6_BLOCKS) addBlock(denied6, label, "ipv6");
  allowed6.addSubnet("2000::", 3, "ipv6");
  return (ip) => {
    const family = isIP(ip);
    if (ip.includes("%")) return false;
    if (family === 4) return !denied4.check(ip, "ipv4");
    return family === 6 && allowed6.check(ip, "ipv6") && !denied6.check(ip, "ipv6");
  };
}

function addBlock(list: BlockList, label: string, family: "ipv4" | "ipv6"): void {
  const [net = "", bits = ""] = (label.split(" ")[0] ?? "").split("/");
  list.addSubnet(net, Number(bits), family);
}

const isPublicBySecondOpinion = createSecondOpinion();
const anyIpv6 = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
const ipv6 = fc
  .tuple(
    anyIpv6,
    fc.constantFrom(null, [0x2001], [0x2001, 0], [0x64, 0xff9b], [0x2002], [0x3fff], [0x100, 0, 0], [0, 0, 0, 0, 0]),
  )
  .map(([groups, head]) => [...(head ?? []), ...groups].slice(0, 8).map((group) => group.toString(16)));
const spelledIpv6 = fc.oneof(
  ipv6.map((groups) => groups.join(":")),
  ipv6.map((groups) => new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1)),
);

describe("address policy", () => {
  test.each(vectors)("W6 $ip is $block", ({ ip, public: isPublic, block }) => {
    expect(classifyAddress(ip)).toEqual({ public: isPublic, block });
  });

  test("W6 a second implementation agrees about every IPv4 and IPv6", () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), spelledIpv6), (ip) => {
        expect({ ip, public: isPublicAddress(ip) }).toEqual({ ip, public: isPublicBySecondOpinion(ip) });
      }),
      { numRuns: 5000 },
    );
  });

  test("text that is no strictly spelled address is never public, and never throws", () => {
    const nearly = fc.array(fc.constantFrom("1", "0", "255", "256", "f", "::", ":", ".", "%", "/", "x", "ffff", "٣"), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(
        fc.oneof(
          nearly.map((parts) => parts.join("")),
          fc.string(),
        ),
        (text) => {
          expect({ text, isAddress: parseAddress(text) !== null }).toEqual({
            text,
            isAddress: isIP(text) !== 0 && !text.includes("%"),
          });
        },
      ),
      { numRuns: 5000 },
    );
  });

  test("numbers are read as a public library reads them", () => {
    fc.assert(
      fc.property(spelledIpv6, (ip) => {
        const bytes = ipaddr.IPv6.parse(ip).toByteArray();
        expect(parseAddress(ip)).toEqual({
          family: 6,
          value: bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n),
        });
      }),
    );
  });

  test("what a public library calls special is never public here", () => {
    expect.hasAssertions();
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), spelledIpv6), (ip) => {
        const isUnicast = ipaddr.parse(ip).range() === "unicast";
        expect({ ip, bothPublic: isPublicAddress(ip) && isUnicast }).toEqual({ ip, bothPublic: isPublicAddress(ip) });
      }),
      { numRuns: 5000 },
    );
  });

  test("an operator's denied blocks are refused besides the table", () => {
    expect(classifyAddress("161.26.0.10", { denyCidrs: cidrs("161.26.0.0/16") })).toEqual({
      public: false,
      block: "denied by the operator",
    });
    expect(isPublicAddress("161.27.0.10", { denyCidrs: cidrs("161.26.0.0/16") })).toBe(true);
  });

  test("W6 behind a NAT64 the IPv4 inside decides, for /96 prefixes only", () => {
    const nat64Prefixes = cidrs("64:ff9b::/96");
    expect(isPublicAddress("64:ff9b::808:808", { nat64Prefixes })).toBe(true);
    expect(isPublicAddress("64:ff9b::a9fe:a9fe", { nat64Prefixes })).toBe(false);
    expect(isPublicAddress("64:ff9b::808:808", { nat64Prefixes, denyCidrs: cidrs("8.8.8.8") })).toBe(false);
    expect(isPublicAddress("64:ff9b:1::808:808", { nat64Prefixes: cidrs("64:ff9b:1::/48") })).toBe(false);
  });

  test("a block with bits behind its prefix, or none at all, is no block", () => {
    for (const text of ["10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/08", "10/8", "::/129", "", "/8", "10.0.0.0/-1"]) {
      expect(parseCidr(text)).toBeNull();
    }
    expect(parseCidr("10.0.0.0/8")).toEqual({ family: 4, base: 0x0a00_0000n, prefixBits: 8 });
    expect(parseCidr("::1")).toMatchObject({ family: 6, prefixBits: 128 });
  });
});
