import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, shown } from "../testing/check.ts";
import { TestHome } from "../testing/home.ts";

test("conda: the environments on the PATH with their configuration covered", () => {
  using home = new TestHome();
  for (const prefix of ["miniforge3", "miniforge3/envs/work"]) {
    home.program(`${prefix}/bin/python`);
    home.file(`${prefix}/conda-meta/history`, "");
    for (const config of [".condarc", "pip.conf", "etc/npmrc", "etc/conda/condarc"])
      home.secret(`${prefix}/${config}`);
  }
  home.program("miniforge3/condabin/conda");
  home.file("miniforge3/pkgs/urls.txt", "");
  const set = shown(home, "miniforge3/envs/work/bin", "miniforge3/condabin");
  assert.deepEqual(set.binds, [home.path("miniforge3")]);
  assert.equal(set.env.CONDA_PREFIX, home.path("miniforge3/envs/work"));
  assert.deepEqual(pathOf(set).slice(1), [
    home.path("miniforge3/envs/work/bin"),
    home.path("miniforge3/condabin"),
  ]);
  assert.equal(set.covers.length, 9);
});

test("conda: an environment alone does not bring in the one that it was made from", () => {
  using home = new TestHome();
  home.program("miniforge3/envs/work/bin/python");
  home.file("miniforge3/envs/work/conda-meta/history", "");
  home.secret("miniforge3/.condarc");
  assert.deepEqual(shown(home, "miniforge3/envs/work/bin").binds, [home.path("miniforge3/envs/work")]);
});
