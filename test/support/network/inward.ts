// Where no sandbox may come, however it is written or named.

/** Addresses of the host, its neighbours and its provider, for names that are allowed by themselves. */
export const inward = [
  "127.0.0.1",
  "10.0.0.1",
  "192.168.0.1",
  "169.254.169.254",
  "100.100.100.200",
  "168.63.129.16",
  "::1",
  "::ffff:7f00:1",
  "64:ff9b::7f00:1",
  "fd00:ec2::254",
  "0.0.0.0",
];

/** Every notation of the host's own loopback. */
export const loopback = [
  "127.0.0.1",
  "2130706433",
  "0x7f000001",
  "0177.0.0.1",
  "127.1",
  "127.0.0.1.",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[64:ff9b::127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[2002:7f00:1::]",
  "[::]",
  "0.0.0.0",
  "0",
  "localhost",
  "x.localhost",
  "[fe80::1%25lo]",
  "[::1%25lo]",
];
