import type { Client } from "@caisson/client";

/** Ends every sandbox and removes every image, so that tests can share a daemon. */
export async function forgetImages({ client }: { client: Client }): Promise<void> {
  for await (const { id } of client.sandboxes.list()) await client.sandboxes.delete(id);
  for (const { name } of await client.images.list()) await client.images.remove(name);
  await client.images.collect();
}
