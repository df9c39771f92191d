// Writes the OpenAPI document from a buf image, which has the comments that descriptors at run time lack.
import { readFileSync, writeFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { generateOpenapi } from "../packages/api/src/openapi/generate.ts";

/** The services that REST serves, in the order in which people read about them. */
const order = ["Sandbox", "Session", "Process", "Run", "File", "Workspace", "Event", "System", "Key"];

export function writeOpenapi(imageFile: string, target: string): void {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(imageFile)));
  const services = order.map((name) => {
    const service = registry.getService(`caisson.v1.${name}Service`);
    if (service === undefined) throw new Error(`there is no service ${name}Service`);
    return service;
  });
  writeFileSync(target, `${JSON.stringify(generateOpenapi(services), null, 1)}\n`);
}
