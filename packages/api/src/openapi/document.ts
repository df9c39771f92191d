import document from "../gen/openapi.json" with { type: "json" };

/** The OpenAPI document of this build. */
export function openapiDocument(): typeof document {
  return document;
}
