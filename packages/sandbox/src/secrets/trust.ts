// How programs inside come to trust the sandbox's authority: files that only this sandbox has, and the variables by
// which each kind of program finds them.
import { readFile } from "node:fs/promises";
import { rootCertificates } from "node:tls";
import { derOf } from "./authority.ts";
import { makeTruststore, truststorePassword } from "./truststore.ts";

/** Where the files lie inside. */
const directory = "/home/agent/.caisson/trust";
const bundle = `${directory}/bundle.pem`;
const truststore = `${directory}/truststore.jks`;

const hostBundles = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

let roots: Promise<string[]> | undefined;

/** What the host trusts, as PEM; Node's own list where the host has none. */
export function hostRoots(): Promise<string[]> {
  roots ??= readRoots();
  return roots;
}

async function readRoots(): Promise<string[]> {
  for (const path of hostBundles) {
    const found = (await readFile(path, "utf8").catch(() => "")).match(certificatePattern);
    if (found) return found;
  }
  return [...rootCertificates];
}

/** Certificates of a file that the configuration names. */
export async function readCertificates(path: string): Promise<string[]> {
  return (await readFile(path, "utf8")).match(certificatePattern) ?? [];
}

/** The files that a sandbox gets: what the host trusts, and its own authority. */
export async function trustFiles(authority: string): Promise<{ path: string; content: Buffer }[]> {
  const certificates = [authority.trim(), ...(await hostRoots())];
  return [
    { path: bundle, content: Buffer.from(`${certificates.join("\n")}\n`) },
    { path: truststore, content: makeTruststore(certificates.map(derOf)) },
  ];
}

/** OpenSSL, Go, curl, git, Node, Deno, Python's requests and pip, cargo, the AWS tools, Java. */
export const trustEnv: Readonly<Record<string, string>> = {
  SSL_CERT_FILE: bundle,
  CURL_CA_BUNDLE: bundle,
  GIT_SSL_CAINFO: bundle,
  NODE_EXTRA_CA_CERTS: bundle,
  DENO_CERT: bundle,
  REQUESTS_CA_BUNDLE: bundle,
  PIP_CERT: bundle,
  CARGO_HTTP_CAINFO: bundle,
  AWS_CA_BUNDLE: bundle,
  JAVA_TOOL_OPTIONS: `-Djavax.net.ssl.trustStore=${truststore} -Djavax.net.ssl.trustStoreType=JKS -Djavax.net.ssl.trustStorePassword=${truststorePassword}`,
};
