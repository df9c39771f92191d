import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAddress, parseRange } from "./addresses.ts";
import { canonicalHost, splitAuthority } from "./host.ts";
import { Policy, type PolicyInit } from "./policy.ts";
import { covers, parseRule } from "./rules.ts";
import { specialOf } from "./special.ts";

const nobody = new Set<string>();

function judge(init: Partial<PolicyInit>, target: string, port = 443): string {
  const policy = new Policy({ mode: "allow", allow: [], deny: [], ...init });
  const { verdict, rule } = policy.judge(canonicalHost(target)!, port);
  return `${verdict}: ${rule}`;
}

test("every notation of a host becomes one form", () => {
  const forms: Record<string, string> = {
    "EXAMPLE.com": "example.com",
    "example.com.": "example.com",
    "bücher.example": "xn--bcher-kva.example",
    "ｅｘａｍｐｌｅ.com": "example.com",
    "2130706433": "127.0.0.1",
    "0x7f000001": "127.0.0.1",
    "0177.0.0.1": "127.0.0.1",
    "127.1": "127.0.0.1",
    "127.0.0.1.": "127.0.0.1",
    "[::ffff:127.0.0.1]": "127.0.0.1",
    "::ffff:7f00:1": "127.0.0.1",
    "[0:0:0:0:0:0:0:1]": "::1",
    "fd00:EC2::254": "fd00:ec2::254",
    "１２７.0.0.1": "127.0.0.1",
    "a_b.example": "a_b.example",
  };
  for (const [given, canonical] of Object.entries(forms))
    assert.equal(canonicalHost(given)?.name, canonical, given);
});

test("what is no host is refused instead of repaired", () => {
  const bad = [
    "",
    ".",
    "a..b",
    ".a",
    "a b",
    "a\0b",
    "a\r\nb",
    "a@b",
    "user:pw@b",
    "a/b",
    "a?b",
    "a#b",
    "a%2eb",
    "fe80::1%eth0",
    "[fe80::1%25eth0]",
    "[1.2.3.4]",
    "[::1",
    "1.2.3.4.5",
    "256.1.1.1",
    "a:80",
    "-a.example",
    `${"a".repeat(64)}.example`,
    `${"a.".repeat(127)}aaaa`,
    "a\\b",
    "*.example",
    "\u202eexample.com",
  ];
  for (const text of bad) assert.equal(canonicalHost(text), undefined, JSON.stringify(text));
});

test("an authority has a host and a port within bounds", () => {
  assert.deepEqual(splitAuthority("a:1"), { host: "a", port: 1 });
  assert.deepEqual(splitAuthority("[::1]:443"), { host: "[::1]", port: 443 });
  assert.deepEqual(splitAuthority("a", 80), { host: "a", port: 80 });
  for (const text of ["a", "a:0", "a:65536", "a:1:2", "a:", "::1:80", "a:+1", "[::1]x:1"])
    assert.equal(splitAuthority(text), undefined, text);
});

test("an empty allowlist denies everything, and off denies what is allowed", () => {
  assert.equal(judge({}, "example.com"), "refused: no rule");
  assert.equal(judge({ mode: "off", allow: ["example.com"] }, "example.com"), "refused: mode off");
});

test("a name is exact, and `*.` is what lies below it, not itself", () => {
  const allow = ["example.com", "*.example.org"];
  assert.match(judge({ allow }, "example.com"), /^allowed/);
  assert.match(judge({ allow }, "Example.COM."), /^allowed/);
  assert.match(judge({ allow }, "a.b.example.org"), /^allowed/);
  for (const other of [
    "a.example.com",
    "example.org",
    "badexample.org",
    "example.com.evil.net",
    "example.co",
    "xexample.com",
    "exаmple.com",
  ])
    assert.equal(judge({ allow }, other), "refused: no rule", other);
});

test("a port bounds a rule", () => {
  assert.match(judge({ allow: ["example.com:443"] }, "example.com", 443), /^allowed/);
  assert.match(judge({ allow: ["example.com:443"] }, "example.com", 80), /^refused/);
});

test("deny beats allow, whichever is narrower", () => {
  assert.equal(
    judge({ allow: ["a.example.com"], deny: ["*.example.com"] }, "a.example.com"),
    "refused: *.example.com",
  );
  assert.equal(judge({ mode: "on", deny: ["example.com"] }, "example.com"), "refused: example.com");
  assert.equal(judge({ mode: "ask", deny: ["example.com"] }, "example.com"), "refused: example.com");
  assert.equal(judge({ mode: "ask" }, "example.com"), "ask: mode ask");
});

test("the machine's bounds hold whatever a sandbox's rules say", () => {
  const bounds = { only: ["*.corp.example"], deny: ["hr.corp.example"] };
  assert.equal(judge({ mode: "on", bounds }, "example.com"), "refused: machine policy");
  assert.equal(
    judge({ mode: "on", bounds, allow: ["hr.corp.example"] }, "hr.corp.example"),
    "refused: hr.corp.example",
  );
  assert.match(judge({ mode: "on", bounds }, "npm.corp.example"), /^allowed/);
});

test("special addresses are recognised in every disguise", () => {
  const kinds: Record<string, string> = {
    "127.8.9.1": "loopback",
    "::1": "loopback",
    "10.0.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "169.254.1.1": "link-local",
    "fe80::1": "link-local",
    "100.64.0.1": "shared",
    "169.254.169.254": "metadata",
    "fd00:ec2::254": "metadata",
    "168.63.129.16": "metadata",
    "100.100.100.200": "metadata",
    "0.0.0.0": "unspecified",
    "::": "unspecified",
    "224.0.0.1": "multicast",
    "ff02::1": "multicast",
    "255.255.255.255": "reserved",
    "fd12::1": "private",
    "::ffff:10.0.0.1": "private",
    "::ffff:169.254.169.254": "metadata",
    "64:ff9b::10.0.0.1": "private",
    "64:ff9b::169.254.169.254": "metadata",
    "64:ff9b:1::1": "translated",
    "2002:0a00:0001::1": "translated",
    "2001:0:1::1": "translated",
    "::10.0.0.1": "reserved",
    "198.18.0.5": "reserved",
    "2001:db8::1": "reserved",
    "4000::1": "reserved",
  };
  for (const [text, kind] of Object.entries(kinds))
    assert.equal(specialOf(parseAddress(text)!, nobody)?.kind, kind, text);
  for (const text of [
    "1.1.1.1",
    "172.32.0.1",
    "100.63.0.1",
    "2606:4700::1",
    "64:ff9b::1.1.1.1",
    "::ffff:8.8.8.8",
  ])
    assert.equal(specialOf(parseAddress(text)!, nobody), undefined, text);
  assert.equal(specialOf(parseAddress("1.1.1.1")!, new Set(["1.1.1.1"]))?.kind, "host");
});

test("a special address needs a rule that names its range, not one that contains it", () => {
  const address = (allow: string[], text: string, mode: PolicyInit["mode"] = "on", port = 80) => {
    const host = canonicalHost("intranet.example")!;
    const policy = new Policy({ mode, allow: ["intranet.example", ...allow], deny: [] });
    return policy.judgeAddress(parseAddress(text)!, host, port)?.rule ?? "fine";
  };
  assert.equal(address([], "10.1.2.3"), "private address");
  assert.equal(address(["10.0.0.0/8"], "10.1.2.3"), "fine");
  assert.equal(address(["10.1.0.0/16:80"], "10.1.2.3"), "fine");
  assert.equal(address(["10.1.0.0/16:80"], "10.1.2.3", "on", 81), "private address");
  assert.equal(address(["10.2.0.0/16"], "10.1.2.3"), "private address");
  assert.equal(address(["0.0.0.0/0"], "10.1.2.3"), "private address");
  assert.equal(address(["169.254.0.0/16"], "169.254.169.254"), "metadata address");
  assert.equal(address(["169.254.169.254"], "169.254.169.254"), "fine");
  assert.equal(address(["0.0.0.0"], "0.0.0.0"), "unspecified address");
  assert.equal(address([], "1.1.1.1"), "fine");
});

test("a literal address is judged by ranges, and never asked about when it is special", () => {
  assert.equal(judge({ allow: ["1.1.1.0/24"] }, "1.1.1.1"), "allowed: 1.1.1.0/24");
  assert.equal(judge({}, "1.1.1.1"), "refused: no rule");
  assert.equal(judge({ mode: "ask" }, "1.1.1.1"), "ask: mode ask");
  assert.equal(judge({ mode: "ask" }, "169.254.169.254"), "refused: metadata address");
  assert.equal(judge({ allow: ["*.1.1.1.example"] }, "1.1.1.1"), "refused: no rule");
});

test("the daemon's own ports are refused even on named addresses", () => {
  const policy = new Policy({ mode: "allow", allow: ["127.0.0.1"], deny: [], ownPorts: () => [7676] });
  const host = canonicalHost("127.0.0.1")!;
  assert.equal(policy.judgeAddress(host.address!, host, 7676)?.rule, "daemon's own port");
  assert.equal(policy.judgeAddress(host.address!, host, 7677), undefined);
});

test("rules that mean nothing are errors", () => {
  for (const text of [
    "",
    "*",
    "*.",
    "a b",
    "10.1.2.3/8",
    "10.0.0.0/33",
    "a:0",
    "a:99999",
    "https://a",
    "*.10.0.0.1",
    "a/24",
    "**.a",
    "a.*",
  ])
    assert.throws(() => parseRule(text), { code: "INVALID_INPUT" }, text);
  assert.equal(parseRule("[fd12::1]:80").port, 80);
  assert.deepEqual(parseRule("fd00::/8").range, parseRange("fd00::/8"));
  assert.equal(parseRule("[fd00::/8]:443").port, 443);
  assert.equal(parseRule("0x7f.1").range?.prefix, 32);
});

test("a rule covers another only if it allows all of it", () => {
  const yes = [
    ["a.example", "a.example:1"],
    ["*.example", "a.example"],
    ["*.example", "*.b.example"],
    ["10.0.0.0/8", "10.1.0.0/16:80"],
  ];
  const no = [
    ["a.example:1", "a.example"],
    ["*.example", "example"],
    ["a.example", "*.a.example"],
    ["10.1.0.0/16", "10.0.0.0/8"],
    ["*.b.example", "*.example"],
  ];
  for (const [outer, inner] of yes)
    assert.ok(covers(parseRule(outer!), parseRule(inner!)), `${outer} ${inner}`);
  for (const [outer, inner] of no)
    assert.ok(!covers(parseRule(outer!), parseRule(inner!)), `${outer} ${inner}`);
});
