import type { DescService } from "@bufbuild/protobuf";
import { rules } from "@caisson/contract";
import { createRestRoutes } from "../faces/rest/routes.ts";
import { commentOf } from "./comments.ts";
import { operationOf } from "./operations.ts";
import { type Json, Schemas } from "./schemas.ts";

/** The OpenAPI 3.1 document of these services, whose files must carry their comments. */
export function generateOpenapi(services: readonly DescService[]): Json {
  const schemas = new Schemas();
  const paths: Record<string, Json> = {};
  // Descriptions need no handlers.
  const routes = createRestRoutes(services.map((service) => ({ service, impl: placeholders(service) })));
  for (const route of routes.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))) {
    paths[route.path] ??= {};
    paths[route.path]![route.verb.toLowerCase()] = operationOf(route, schemas);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Caisson",
      version: `${rules.contract.name}.${rules.contract.revision}`,
      description:
        "Sealed sandboxes for AI coding agents. Made from proto/caisson/v1; spec/behavior.md has the rules around it.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: services.map((service) => ({
      name: service.name.replace(/Service$/, ""),
      description: commentOf(service),
    })),
    paths,
    components: {
      schemas: { ...sorted(schemas.all), Error: errorSchema() },
      responses: {
        Error: {
          description: "An error of the closed table.",
          content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
        },
      },
      securitySchemes: {
        key: {
          type: "http",
          scheme: "bearer",
          description: "A key of `caisson keys create`, or a token of the configured issuer.",
        },
      },
    },
  };
}

function placeholders(service: DescService): Record<string, () => never> {
  const unused = () => {
    throw new Error("a description has no handlers");
  };
  return Object.fromEntries(service.methods.map(({ localName }) => [localName, unused]));
}

function errorSchema(): Json {
  const text = (description: string) => ({ type: "string", description });
  return {
    type: "object",
    required: ["error"],
    properties: {
      error: {
        type: "object",
        required: ["code", "status", "message", "next_step", "request_id"],
        properties: {
          code: {
            type: "string",
            enum: Object.keys(rules.errors),
            description: "From the closed table in spec/rules.json.",
          },
          status: text("The gRPC status."),
          message: text("What happened."),
          next_step: text("What to do about it."),
          request_id: text("Names this call in the daemon's log."),
        },
      },
    },
  };
}

function sorted(schemas: Record<string, Json>): Record<string, Json> {
  return Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
}
