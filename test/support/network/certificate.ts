// Certificates for servers of tests, made by OpenSSL, under an authority that only the test trusts.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Certificate {
  key: string;
  cert: string;
  /** The authority's certificate, for programs to trust. */
  authority: string;
}

export function makeCertificate(names: readonly string[]): Certificate {
  const dir = mkdtempSync(join(tmpdir(), "caisson-cert-"));
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: dir, stdio: "pipe" });
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  try {
    openssl(
      "req",
      "-x509",
      ...curve,
      "-keyout",
      "ca.key",
      "-out",
      "ca.pem",
      "-subj",
      "/CN=test authority",
      "-days",
      "2",
    );
    openssl("req", "-new", ...curve, "-keyout", "key.pem", "-out", "request.pem", "-subj", `/CN=${names[0]}`);
    writeFileSync(join(dir, "ext"), `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}\n`);
    const signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext"];
    openssl("x509", "-req", "-in", "request.pem", ...signing, "-out", "cert.pem");
    const read = (name: string) => readFileSync(join(dir, name), "utf8");
    return { key: read("key.pem"), cert: read("cert.pem"), authority: read("ca.pem") };
  } finally {
    rmSync(dir, { recursive: true });
  }
}
