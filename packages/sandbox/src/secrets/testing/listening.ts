import { type AddressInfo, connect, type Server, type Socket } from "node:net";

/** Has a server listen on loopback; where, and how to reach it. */
export async function listening(server: Server): Promise<{ port: number; dial(): Promise<Socket> }> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const dial = () =>
    new Promise<Socket>((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", () => resolve(socket));
      socket.once("error", reject);
    });
  return { port, dial };
}
