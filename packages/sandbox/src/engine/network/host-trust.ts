/** By these programs are told which authorities to trust. */
const variables = [
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "NODE_EXTRA_CA_CERTS",
  "REQUESTS_CA_BUNDLE",
  "PIP_CERT",
  "CARGO_HTTP_CAINFO",
];

/** What is inside at the same path, and belongs to the machine. */
const shown = /^\/(etc\/ssl|etc\/pki|usr)\/[\w./+-]+$/;

/**
 * A developer whose mirror has a certificate of the company's own has told the tools so: programs inside are told the same, as
 * long as that is about the machine's own files. An image has authorities of its own.
 */
export function hostTrust(
  image: unknown,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  if (image !== undefined) return {};
  const told = variables.map((name) => [name, env[name] ?? ""] as const);
  return Object.fromEntries(told.filter(([, path]) => shown.test(path) && !path.includes("..")));
}
