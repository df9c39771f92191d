import assert from "node:assert/strict";
import { test } from "node:test";
import { maven } from "./maven.ts";
import { machine, rules, saying } from "./testing/machine.ts";

const mirror = (of: string, url: string) =>
  `<settings><mirrors><mirror><id>m</id><mirrorOf>${of}</mirrorOf><url>${url}</url></mirror></mirrors></settings>`;
const pom = (id: string, url: string) =>
  `<project><repositories><repository><id>${id}</id><url>${url}</url></repository></repositories></project>`;

const own = {
  "bin/mvn": saying(
    "[FATAL] Non-resolvable parent POM: Cannot access central (https://own.test/maven2) in offline mode and the artifact",
  ),
};

test("without any configuration it is the central repository that Maven names", async () => {
  using host = machine(own);
  assert.deepEqual(rules(await maven(host)), ["own.test:443"]);
});

test("Maven is not asked where a mirror stands for its central repository", async () => {
  using host = machine({ ...own, "home/.m2/settings.xml": mirror("central", "https://mirror.test/") });
  assert.deepEqual(rules(await maven(host)), ["mirror.test:443"]);
});

test("a mirror of everything counts instead of whatever the project names", async () => {
  using host = machine({
    "home/.m2/settings.xml": mirror("*", "http://mirror.test:8081/maven"),
    "project/pom.xml": pom("extra", "https://extra.test/repo"),
  });
  const found = await maven(host);
  assert.deepEqual(rules(found), ["mirror.test:8081"]);
  assert.deepEqual(found.files, [
    {
      path: ".m2/settings.xml",
      content:
        "<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>http://mirror.test:8081/maven</url></mirror></mirrors></settings>\n",
    },
  ]);
});

test("a mirror of some leaves the others, repositories of settings and project add up", async () => {
  using host = machine({
    "home/.m2/settings.xml": `${mirror("*,!own", "https://mirror.test/")}
      <!-- <repository><id>no</id><url>https://commented.test/</url></repository> -->
      <profiles><profile><pluginRepositories><pluginRepository><id>own</id><url>https://own.test/a&amp;b</url></pluginRepository></pluginRepositories></profile></profiles>`,
    "project/pom.xml": `${pom("p", "https://p.test/")}<distributionManagement><repository><id>d</id><url>https://publish.test/</url></repository></distributionManagement>`,
  });
  const found = await maven(host);
  assert.deepEqual(rules(found), ["mirror.test:443", "own.test:443"]);
});

test("what stands for something else is noted, and so is nothing that needs no network", async () => {
  using host = machine(
    {
      "home/.m2/settings.xml": mirror("central", `https://\${env.MIRROR}/m2`),
      "project/pom.xml": pom("a", `\${repo.url}`) + pom("b", "file:///srv/repo"),
    },
    { MIRROR: "by-variable.test" },
  );
  const found = await maven(host);
  assert.deepEqual(rules(found), ["by-variable.test:443"]);
  assert.equal(found.notes.length, 1);
});

test("an unclosed element is left out without taking long", async () => {
  using host = machine({ ...own, "project/pom.xml": "<repository>".repeat(50_000) });
  assert.deepEqual(rules(await maven(host)), ["own.test:443"]);
});
