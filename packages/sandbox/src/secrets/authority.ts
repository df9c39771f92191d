// A certificate authority that one sandbox trusts, and nobody else. Its key never enters the sandbox.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from "node:crypto";
import { isIPv4, isIPv6 } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { AsnConvert, OctetString } from "@peculiar/asn1-schema";
import * as x509 from "@peculiar/asn1-x509";

const ecdsaWithSha256 = "1.2.840.10045.4.3.2";
const commonName = "2.5.4.3";
const serverAuth = "1.3.6.1.5.5.7.3.1";
const dayMs = 86_400_000;
const authorityDays = 730;
const leafDays = 30;
/** A name's certificate is made anew before it expires. */
const renewedAfterDays = 15;
const mostLeaves = 256;

/** What has to be kept so that a sandbox's authority survives the daemon. */
export interface AuthorityRecord {
  key: string;
  certificate: string;
}

interface Leaf {
  context: SecureContext;
  until: number;
}

export class Authority {
  /** As PEM. */
  readonly certificate: string;
  readonly #key: KeyObject;
  readonly #issuer: x509.Name;
  readonly #leafKey: KeyObject;
  readonly #leafKeyPem: string;
  readonly #leaves = new Map<string, Leaf>();

  constructor({ key, certificate }: AuthorityRecord) {
    this.certificate = certificate;
    this.#key = createPrivateKey(key);
    this.#issuer = AsnConvert.parse(derOf(certificate), x509.Certificate).tbsCertificate.subject;
    const { privateKey, publicKey } = newKeys();
    this.#leafKey = publicKey;
    this.#leafKeyPem = pemOf(privateKey);
  }

  static make(name: string): AuthorityRecord {
    const { privateKey, publicKey } = newKeys();
    const subject = nameOf(name);
    const der = certificate({
      subject,
      issuer: subject,
      days: authorityDays,
      publicKey,
      signingKey: privateKey,
      extensions: [
        extension(
          x509.id_ce_basicConstraints,
          new x509.BasicConstraints({ cA: true, pathLenConstraint: 0 }),
          true,
        ),
        extension(
          x509.id_ce_keyUsage,
          new x509.KeyUsage(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign),
          true,
        ),
        extension(x509.id_ce_subjectKeyIdentifier, new OctetString(identifierOf(publicKey))),
      ],
    });
    return { key: pemOf(privateKey), certificate: toPem(der) };
  }

  /** A server's side of TLS for a name or an address. */
  contextFor(name: string): SecureContext {
    const known = this.#leaves.get(name);
    if (known && known.until > Date.now()) return known.context;
    if (this.#leaves.size >= mostLeaves) this.#leaves.clear();
    const cert = this.#leaf(name) + this.certificate;
    const context = createSecureContext({ key: this.#leafKeyPem, cert, minVersion: "TLSv1.2" });
    this.#leaves.set(name, { context, until: Date.now() + renewedAfterDays * dayMs });
    return context;
  }

  #leaf(name: string): string {
    const der = certificate({
      // A common name has at most 64 characters; the name that counts is the alternative one.
      subject: nameOf(name.slice(0, 64)),
      issuer: this.#issuer,
      days: leafDays,
      publicKey: this.#leafKey,
      signingKey: this.#key,
      extensions: [
        extension(x509.id_ce_basicConstraints, new x509.BasicConstraints({ cA: false }), true),
        extension(x509.id_ce_keyUsage, new x509.KeyUsage(x509.KeyUsageFlags.digitalSignature), true),
        extension(x509.id_ce_extKeyUsage, new x509.ExtendedKeyUsage([serverAuth])),
        extension(x509.id_ce_subjectAltName, new x509.SubjectAlternativeName([alternativeName(name)])),
        extension(
          x509.id_ce_authorityKeyIdentifier,
          new x509.AuthorityKeyIdentifier({
            keyIdentifier: new x509.KeyIdentifier(identifierOf(createPublicKey(this.#key))),
          }),
        ),
      ],
    });
    return toPem(der);
  }
}

interface Parts {
  subject: x509.Name;
  issuer: x509.Name;
  days: number;
  publicKey: KeyObject;
  signingKey: KeyObject;
  extensions: x509.Extension[];
}

function certificate({ subject, issuer, days, publicKey, signingKey, extensions }: Parts): Buffer {
  const algorithm = () => new x509.AlgorithmIdentifier({ algorithm: ecdsaWithSha256 });
  const serial = randomBytes(16);
  // A serial number is positive and has no leading zeros.
  serial[0] = (serial[0]! & 0x3f) | 0x40;
  const tbsCertificate = new x509.TBSCertificate({
    version: x509.Version.v3,
    serialNumber: toArrayBuffer(serial),
    signature: algorithm(),
    issuer,
    subject,
    validity: new x509.Validity({
      // Clocks inside and outside may differ.
      notBefore: new Date(Date.now() - dayMs),
      notAfter: new Date(Date.now() + days * dayMs),
    }),
    subjectPublicKeyInfo: AsnConvert.parse(
      publicKey.export({ type: "spki", format: "der" }),
      x509.SubjectPublicKeyInfo,
    ),
    extensions: new x509.Extensions(extensions),
  });
  const signature = sign("sha256", Buffer.from(AsnConvert.serialize(tbsCertificate)), signingKey);
  const whole = new x509.Certificate({
    tbsCertificate,
    signatureAlgorithm: algorithm(),
    signatureValue: toArrayBuffer(signature),
  });
  return Buffer.from(AsnConvert.serialize(whole));
}

function newKeys(): { privateKey: KeyObject; publicKey: KeyObject } {
  return generateKeyPairSync("ec", { namedCurve: "prime256v1" });
}

function nameOf(text: string): x509.Name {
  const value = new x509.AttributeValue({ utf8String: text });
  return new x509.Name([
    new x509.RelativeDistinguishedName([new x509.AttributeTypeAndValue({ type: commonName, value })]),
  ]);
}

function alternativeName(name: string): x509.GeneralName {
  return isIPv4(name) || isIPv6(name)
    ? new x509.GeneralName({ iPAddress: name })
    : new x509.GeneralName({ dNSName: name });
}

function extension(id: string, value: object, critical = false): x509.Extension {
  return new x509.Extension({
    extnID: id,
    critical,
    extnValue: new OctetString(AsnConvert.serialize(value)),
  });
}

function identifierOf(key: KeyObject): ArrayBuffer {
  return toArrayBuffer(
    createHash("sha1")
      .update(key.export({ type: "spki", format: "der" }))
      .digest(),
  );
}

function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }) as string;
}

function toPem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

export function derOf(pem: string): Buffer {
  return Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ""), "base64");
}
