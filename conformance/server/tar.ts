// The smallest tar writer that can also write what nobody should.

interface Entry {
  name: string;
  body?: string;
  /** `0` file, `1` hard link, `2` symbolic link, `3` device, `5` directory. */
  type?: string;
  link?: string;
  mode?: number;
}

export function tar(entries: Entry[]): Buffer {
  return Buffer.concat([...entries.map(entryBytes), Buffer.alloc(1024)]);
}

function entryBytes({ name, body = "", type = "0", link = "", mode = 0o644 }: Entry): Buffer {
  const header = Buffer.alloc(512);
  const content = Buffer.from(body);
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, "0")}\0`;
  header.write(name, 0);
  header.write(octal(mode, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(content.length, 12), 124);
  header.write(octal(0, 12), 136);
  header.write(" ".repeat(8), 148);
  header.write(type, 156);
  header.write(link, 157);
  header.write("ustar\u000000", 257);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, "0")}\0 `,
    148,
  );
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

export const hostileArchives: Record<string, Entry[]> = {
  "a name that climbs": [{ name: "../escaped", body: "x" }],
  "an absolute name": [{ name: "/tmp/escaped", body: "x" }],
  "a write through a link": [
    { name: "link", type: "2", link: "/tmp" },
    { name: "link/escaped", body: "x" },
  ],
  "a hard link to outside": [{ name: "hard", type: "1", link: "/etc/passwd" }],
  "a device": [{ name: "device", type: "3" }],
  "a set-uid program": [{ name: "program", body: "x", mode: 0o4755 }],
  "a name twice": [
    { name: "twice", body: "1" },
    { name: "twice", body: "2" },
  ],
};
