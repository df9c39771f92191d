// Java's own format of trusted certificates (JKS), which every Java reads: a magic number, entries, and a digest that is
// keyed with a password that everybody knows.
import { createHash } from "node:crypto";

/** Java's default; the file holds nothing secret. */
export const truststorePassword = "changeit";

const magic = 0xfeedfeed;
const version = 2;
const trustedCertificate = 2;

/** A truststore with these certificates, as DER. */
export function makeTruststore(certificates: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [uint32(magic), uint32(version), uint32(certificates.length)];
  for (const [index, der] of certificates.entries()) {
    parts.push(
      uint32(trustedCertificate),
      text(`c${index}`),
      Buffer.alloc(8),
      text("X.509"),
      uint32(der.length),
      der,
    );
  }
  const content = Buffer.concat(parts);
  const digest = createHash("sha1")
    .update(Buffer.from(truststorePassword, "utf16le").swap16())
    .update("Mighty Aphrodite")
    .update(content)
    .digest();
  return Buffer.concat([content, digest]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
