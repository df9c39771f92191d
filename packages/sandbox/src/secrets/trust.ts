// How programs inside come to trust the sandbox's authority: files that only this sandbox has, and the variables by
// which each kind of program finds them.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { CaissonError } from "@caisson/contract";
import { derOf } from "./authority.ts";
import { makeTruststore, truststorePassword } from "./truststore.ts";

/** Directories inside that are the sandbox's own, in memory: the first is where the files lie unless a profile forbids it. */
const privatePlaces = ["/home/agent", "/tmp", "/var/tmp", "/run", "/dev/shm"];

/** Where the files lie inside, by the only paths that a profile lets anybody write; empty for every private one. */
export function trustDirectory(allowWrite: readonly string[]): string {
  const isPrivate = (path: string) =>
    privatePlaces.some((place) => path === place || path.startsWith(`${place}/`));
  const place = allowWrite.length === 0 ? privatePlaces[0] : allowWrite.find(isPrivate);
  if (place !== undefined) return `${place}/.caisson/trust`;
  throw new CaissonError(
    "NOT_ENFORCEABLE",
    "secrets need a private directory that the profile allows to write, such as /tmp: programs have to find the sandbox's authority",
  );
}

const bundle = "bundle.pem";
const truststore = "truststore.jks";

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
export async function trustFiles(
  directory: string,
  authority: string,
): Promise<{ path: string; content: Buffer }[]> {
  const certificates = [authority.trim(), ...(await hostRoots())];
  return [
    { path: join(directory, bundle), content: Buffer.from(`${certificates.join("\n")}\n`) },
    { path: join(directory, truststore), content: makeTruststore(certificates.map(derOf)) },
  ];
}

/** OpenSSL, Go, curl, git, Node, Deno, Python's requests and pip, cargo, the AWS tools, gRPC's own library, Java. */
export function trustEnv(directory: string): Record<string, string> {
  const file = join(directory, bundle);
  const store = join(directory, truststore);
  return {
    SSL_CERT_FILE: file,
    CURL_CA_BUNDLE: file,
    GIT_SSL_CAINFO: file,
    NODE_EXTRA_CA_CERTS: file,
    // A bundle in npm's own configuration would count instead.
    npm_config_cafile: file,
    DENO_CERT: file,
    REQUESTS_CA_BUNDLE: file,
    PIP_CERT: file,
    CARGO_HTTP_CAINFO: file,
    AWS_CA_BUNDLE: file,
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: file,
    JAVA_TOOL_OPTIONS: `-Djavax.net.ssl.trustStore=${store} -Djavax.net.ssl.trustStoreType=JKS -Djavax.net.ssl.trustStorePassword=${truststorePassword}`,
  };
}
