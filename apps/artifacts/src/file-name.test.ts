import { expect, test } from "vitest";
import { toDisposition, toFileName } from "./file-name.ts";

const at = (path: string): string => `https://shop.example.com${path}`;

test.each([
  [at("/p/catalogue.pdf"), "catalogue.pdf"],
  [at("/p/a%20b.txt"), "a_b.txt"],
  [at("/p/%E6%97%A5%E6%9C%AC.txt"), "日本.txt"],
  [at("/"), "artifact"],
  [at(""), "artifact"],
  [at("/p/"), "artifact"],
  ["not a url", "artifact"],
  [at("/x.txt?token=secret#part"), "x.txt"],
  [at("/..%2f..%2fetc%2fpasswd"), "etc_passwd"],
  [at("/%2e%2e"), "artifact"],
  [at("/.htaccess"), "htaccess"],
  [at("/a%0d%0ax-header:%20y"), "a_x-header_y"],
  [at("/a%00b"), "a_b"],
  [at("/%E2%80%AEtxt.exe"), "txt.exe"],
  [at("/a%22;b=c"), "a_b_c"],
  [at("/%ff%fe"), "ff_fe"],
  [at("/con"), "artifact-con"],
  [at("/NUL.txt"), "artifact-NUL.txt"],
  [at("/---"), "artifact"],
])("the name of %s is %s", (url, name) => {
  expect(toFileName(url)).toBe(name);
});

test("a long name keeps its end, with the extension", () => {
  const name = toFileName(at(`/${"x".repeat(3000)}.pdf`));
  expect(name.length).toBe(100);
  expect(name.endsWith("x.pdf")).toBe(true);
});

test("a disposition is always an attachment, one line of ASCII", () => {
  for (const path of ["/a.html", "/%C3%A9.svg", "/%E6%97%A5%E6%9C%AC", "/a%0d%0ab", "/%22", "/"]) {
    expect(toDisposition(at(path))).toMatch(/^attachment; filename=[ -~]+$/);
  }
  expect(toDisposition(at("/%C3%A9.svg"))).toBe("attachment; filename=_.svg; filename*=UTF-8''%C3%A9.svg");
});
