// `npm run release`: builds the guest and packs it, one npm package per platform, so that people without Rust can start.
// `npm run release -- arm64` builds for another processor; Rust's own linker does, nothing else is needed.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const maxBytes = 2_000_000;

const platforms = {
  x64: { target: "x86_64-unknown-linux-musl", cpu: "x64" },
  arm64: { target: "aarch64-unknown-linux-musl", cpu: "arm64" },
} as const;

type Cpu = keyof typeof platforms;

function run(command: string, args: string[], env: Record<string, string> = {}): string {
  return execFileSync(command, args, {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
}

function build(cpu: Cpu): string {
  const { target } = platforms[cpu];
  run("rustup", ["target", "add", target]);
  run(
    "cargo",
    ["build", "--release", "--locked", "--manifest-path", "guest/Cargo.toml", "--target", target],
    {
      RUSTFLAGS: "-C linker=rust-lld -C target-feature=+crt-static",
      CARGO_TARGET_DIR: join(root, "guest/target"),
    },
  );
  return join(root, "guest/target", target, "release/caisson-guest");
}

function pack(cpu: Cpu, binary: string): string {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const name = `@caisson/guest-linux-${cpu}`;
  const dir = join(root, "dist", `guest-linux-${cpu}`);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  copyFileSync(binary, join(dir, "caisson-guest"));
  chmodSync(join(dir, "caisson-guest"), 0o755);
  copyFileSync(join(root, "LICENSE"), join(dir, "LICENSE"));
  const manifest = {
    name,
    version,
    description: `Caisson's guest for Linux on ${cpu}`,
    license: "Apache-2.0",
    os: ["linux"],
    cpu: [platforms[cpu].cpu],
    files: ["caisson-guest"],
  };
  writeFileSync(join(dir, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const packed = JSON.parse(run("npm", ["pack", dir, "--pack-destination", join(root, "dist"), "--json"]));
  return join("dist", packed[0].filename);
}

const wanted = process.argv.slice(2);
const cpus = (wanted.length > 0 ? wanted : [process.arch]) as Cpu[];
for (const cpu of cpus) {
  if (!Object.hasOwn(platforms, cpu)) {
    console.error(`there is no platform ${cpu}; there are ${Object.keys(platforms).join(", ")}`);
    process.exit(2);
  }
  const binary = build(cpu);
  const { size } = statSync(binary);
  if (size > maxBytes) {
    console.error(`the guest for ${cpu} has ${size} bytes; it must stay below ${maxBytes}`);
    process.exit(1);
  }
  console.log(`${pack(cpu, binary)}  (guest: ${size} bytes)`);
}
console.log("install one in a checkout with: npm install --no-save dist/NAME.tgz");
