// A developer whose tools are configured for a company's mirror, and who has nothing else: a home directory to run a daemon with.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Account } from "../daemon.ts";
import { lendRust } from "../lent-rust.ts";

export interface Developer extends Disposable {
  env: Record<string, string>;
}

/** `url`: the mirror. The machine trusts the authority of its certificate. */
export function makeDeveloper(account: Account, url: string, authority: string): Developer {
  const { home, env } = lendRust(account);
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(home, path)), { recursive: true, mode: 0o755 });
    writeFileSync(join(home, path), content);
    return join(home, path);
  };
  const credentials = url.replace("://", "://someone:canary@");
  write(
    ".npmrc",
    `registry=${credentials}/npm/\n${url.slice("https:".length)}/npm/:_authToken=canary\n@team:registry=${url}/npm/\n`,
  );
  write(".config/pip/pip.conf", `[global]\nindex-url = ${credentials}/simple\n`);
  write(".config/go/env", `GOPROXY=${url}/go\nGOSUMDB=off\nGOFLAGS=-modcacherw\n`);
  write(
    ".cargo/config.toml",
    `[source.crates-io]\nreplace-with = "company"\n[source.company]\nregistry = "sparse+${url}/cargo/"\n`,
  );
  write(".cargo/credentials.toml", '[registry]\ntoken = "canary"\n');
  write(
    ".m2/settings.xml",
    `<settings><servers><server><id>m</id><password>canary</password></server></servers>
      <mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>${url}/maven</url></mirror></mirrors></settings>`,
  );
  write(".gitconfig", `[url "${credentials}/"]\n\tinsteadOf = https://code.example.test/\n`);
  const ca = write("authority.pem", authority);
  return {
    env: { ...env, NODE_EXTRA_CA_CERTS: ca },
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}
