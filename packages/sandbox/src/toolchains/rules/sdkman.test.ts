import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { canary, TestHome } from "../testing/home.ts";

const candidates = ".sdkman/candidates";

test("sdkman: the candidates on the PATH and the variables that name them", () => {
  using home = new TestHome();
  home.program(`${candidates}/java/21-tem/bin/java`);
  home.link(`${candidates}/java/current`, "21-tem");
  home.program(`${candidates}/gradle/8.9/bin/gradle`);
  home.secret(`${candidates}/gradle/8.9/gradle.properties`);
  home.program(`${candidates}/scala/3.4/bin/scala`);
  const set = shown(home, `${candidates}/java/current/bin`, `${candidates}/gradle/8.9/bin`);
  assert.deepEqual(set.binds, [home.path(`${candidates}/java`), home.path(`${candidates}/gradle`)]);
  assert.equal(set.env.JAVA_HOME, home.path(`${candidates}/java/current`));
  assert.deepEqual(pathOf(set).slice(1), [
    home.path(`${candidates}/java/current/bin`),
    home.path(`${candidates}/gradle/8.9/bin`),
  ]);
});

test("sdkman: Maven's own settings are covered only if they hold passwords", () => {
  using home = new TestHome();
  home.program(`${candidates}/maven/3.9.9/bin/mvn`);
  const example = "<settings><!-- <password>secret</password> --></settings>";
  home.file(`${candidates}/maven/3.9.9/conf/settings.xml`, example);
  assert.deepEqual(shown(home, `${candidates}/maven/3.9.9/bin`).covers, []);
  const real = `<settings><servers><server><password>${canary}</password></server></servers></settings>`;
  home.file(`${candidates}/maven/3.9.9/conf/settings.xml`, real);
  assert.equal(shown(home, `${candidates}/maven/3.9.9/bin`).covers.length, 1);
});
