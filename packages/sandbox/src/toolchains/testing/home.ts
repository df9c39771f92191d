import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Stands in every file that nobody inside may read. */
export const canary = "canary-5b0e1f";

/** Where developers' tools keep passwords, tokens and keys, below a home directory. */
export const secretFiles = [
  ".aws/credentials",
  ".azure/msal_token_cache.json",
  ".bash_history",
  ".cargo/config.toml",
  ".cargo/credentials.toml",
  ".claude/.credentials.json",
  ".codex/auth.json",
  ".condarc",
  ".config/chromium/Default/Login Data",
  ".config/gcloud/credentials.db",
  ".config/gh/hosts.yml",
  ".config/go/env",
  ".config/google-chrome/Default/Cookies",
  ".config/mise/conf.d/secret.toml",
  ".config/pip/pip.conf",
  ".docker/config.json",
  ".gem/credentials",
  ".git-credentials",
  ".gitconfig",
  ".gnupg/private-keys-v1.d/key.key",
  ".gradle/gradle.properties",
  ".kube/config",
  ".local/share/keyrings/login.keyring",
  ".local/share/uv/credentials/credentials.toml",
  ".local/state/history",
  ".m2/settings.xml",
  ".mozilla/firefox/a.default/logins.json",
  ".netrc",
  ".npmrc",
  ".nvm/.npmrc",
  ".pip/pip.conf",
  ".pypirc",
  ".sdkman/etc/config",
  ".ssh/id_ed25519",
  ".volta/hooks.json",
  ".yarnrc.yml",
];

/** A home directory made up for a test. */
export class TestHome implements Disposable {
  readonly dir: string;

  constructor() {
    this.dir = realpathSync(mkdtempSync(join(tmpdir(), "caisson-home-")));
    for (const file of secretFiles) this.secret(file);
  }

  path(name: string): string {
    return join(this.dir, name);
  }

  /** A program that prints its own path. */
  program(name: string): string {
    const path = this.file(name, '#!/bin/sh\necho "$0"\n');
    chmodSync(path, 0o755);
    return path;
  }

  secret(name: string): string {
    return this.file(name, canary);
  }

  file(name: string, content: string): string {
    const path = this.path(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  link(name: string, target: string): void {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    symlinkSync(target, this.path(name));
  }

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
