// What package managers fetch, as files: a git repository, an npm package, a wheel, a crate, a Maven artifact and a Go module of
// one release each, as registries lay them out.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Fills a directory; `url` is where it will be served. */
export function makeMirror(dir: string, url: string): void {
  const write = (path: string, content: string | Buffer) => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), content);
  };
  write("file", "reached\n");
  gitRepository(dir, write);
  npmPackage(dir, url, write);
  wheel(dir, write);
  write(
    "maven/test/mirror/parent/1/parent-1.pom",
    "<project><modelVersion>4.0.0</modelVersion><groupId>test.mirror</groupId><artifactId>parent</artifactId><version>1</version><packaging>pom</packaging></project>\n",
  );
  goModule(dir, write);
  crate(dir, url, write);
}

type Write = (path: string, content: string | Buffer) => void;

function gitRepository(dir: string, write: Write): void {
  write("work/readme", "reached\n");
  const git = (...args: string[]) =>
    execFileSync(
      "git",
      ["-c", "user.name=t", "-c", "user.email=t@t.test", "-c", "commit.gpgsign=false", ...args],
      {
        cwd: join(dir, "work"),
        stdio: "pipe",
      },
    );
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-q", "-m", "one");
  git("clone", "-q", "--bare", ".", join(dir, "repo.git"));
  execFileSync("git", ["--git-dir", join(dir, "repo.git"), "update-server-info"], { stdio: "pipe" });
}

function npmPackage(dir: string, url: string, write: Write): void {
  write("package/package.json", '{"name":"demo","version":"1.0.0"}');
  write("npm/demo/-/demo-1.0.0.tgz", "");
  const tarball = join(dir, "npm/demo/-/demo-1.0.0.tgz");
  execFileSync("tar", ["-czf", tarball, "package"], { cwd: dir });
  const integrity = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`;
  const dist = { tarball: `${url}/npm/demo/-/demo-1.0.0.tgz`, integrity };
  const version = { name: "demo", version: "1.0.0", dist };
  write(
    "npm/demo/index.json",
    JSON.stringify({ name: "demo", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } }),
  );
}

function wheel(dir: string, write: Write): void {
  const info = "demo-1.0.dist-info";
  write("wheel/demo.py", "word = 'reached'\n");
  write(`wheel/${info}/METADATA`, "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n");
  write(`wheel/${info}/WHEEL`, "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
  write(`wheel/${info}/RECORD`, `demo.py,,\n${info}/METADATA,,\n${info}/WHEEL,,\n${info}/RECORD,,\n`);
  write("simple/demo/index.html", '<a href="../../demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>');
  zip(join(dir, "wheel"), join(dir, "demo-1.0-py3-none-any.whl"), ["demo.py", info]);
}

function goModule(dir: string, write: Write): void {
  const base = "go/demo.test/mod/@v";
  write(`${base}/v1.0.0.mod`, "module demo.test/mod\n");
  write(`${base}/v1.0.0.info`, '{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}');
  write("gozip/demo.test/mod@v1.0.0/go.mod", "module demo.test/mod\n");
  write("gozip/demo.test/mod@v1.0.0/mod.go", "package mod\n");
  zip(join(dir, "gozip"), join(dir, base, "v1.0.0.zip"), ["demo.test"]);
}

/** A sparse index, whose crates lie elsewhere on the same host. */
function crate(dir: string, url: string, write: Write): void {
  write("crate/demo-1.0.0/Cargo.toml", '[package]\nname = "demo"\nversion = "1.0.0"\nedition = "2021"\n');
  write("crate/demo-1.0.0/src/lib.rs", 'pub const WORD: &str = "reached";\n');
  const archive = join(dir, "crates/demo/1.0.0/download");
  write("crates/demo/1.0.0/download", "");
  execFileSync("tar", ["-czf", archive, "demo-1.0.0"], { cwd: join(dir, "crate") });
  const cksum = createHash("sha256").update(readFileSync(archive)).digest("hex");
  const entry = { name: "demo", vers: "1.0.0", deps: [], cksum, features: {}, yanked: false };
  write("cargo/config.json", JSON.stringify({ dl: `${url}/crates` }));
  write("cargo/de/mo/demo", `${JSON.stringify(entry)}\n`);
}

/** Files alone: Go takes no archive that names directories. */
function zip(cwd: string, file: string, what: string[]): void {
  const script =
    "import sys, os, zipfile\n" +
    "with zipfile.ZipFile(sys.argv[1], 'w') as z:\n" +
    "  for top in sys.argv[2:]:\n" +
    "    if os.path.isfile(top): z.write(top)\n" +
    "    for at, _, files in os.walk(top):\n" +
    "      for f in files: z.write(os.path.join(at, f))\n";
  execFileSync("/usr/bin/python3", ["-c", script, file, ...what], { cwd, stdio: "pipe" });
}
