import assert from "node:assert/strict";
import { test } from "node:test";
import { hostTrust } from "./host-trust.ts";

test("programs inside trust what the machine's own files say, and nothing of the developer's home", () => {
  const bundle = "/etc/ssl/certs/ca-certificates.crt";
  const env = {
    NODE_EXTRA_CA_CERTS: bundle,
    SSL_CERT_FILE: "/home/me/ca.pem",
    PIP_CERT: "/etc/ssl/../../root/ca.pem",
    CURL_CA_BUNDLE: "",
    NODE_OPTIONS: bundle,
  };
  assert.deepEqual(hostTrust(undefined, env), { NODE_EXTRA_CA_CERTS: bundle });
  assert.deepEqual(hostTrust({}, env), {});
});
