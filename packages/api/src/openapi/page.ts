import { openapiDocument } from "./document.ts";

interface Schema {
  $ref?: string;
  type?: string;
  format?: string;
  contentEncoding?: string;
  description?: string;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  properties?: Record<string, Schema>;
}

interface Operation {
  operationId: string;
  tags: string[];
  summary?: string;
  description?: string;
  parameters: { name: string; in: string; description?: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: { 200: { content: Record<string, { schema: Schema; "x-events"?: string[] }> } };
  "x-scope": string;
}

/** The document for people: one page of plain HTML that needs no script and nothing from outside. */
export function docsPage(): string {
  const { info, tags, paths, components } = openapiDocument();
  const operations = Object.entries(paths as unknown as Record<string, Record<string, Operation>>).flatMap(
    ([path, verbs]) => Object.entries(verbs).map(([verb, operation]) => ({ path, verb, operation })),
  );
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(tag.name));
    const items = own.map(({ path, verb, operation }) => operationHtml(path, verb, operation)).join("");
    return `<h2 id="${id(tag.name)}">${text(tag.name)}</h2><p>${text(tag.description)}</p>${items}`;
  });
  const schemas = Object.entries(components.schemas as unknown as Record<string, Schema>);
  const nav = tags.map((tag) => `<a href="#${id(tag.name)}">${text(tag.name)}</a>`).join(" · ");
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Caisson API</title><style>${style}</style></head><body><main>
<h1>${text(info.title)} API <small>${text(info.version)}</small></h1><p>${text(info.description)}</p>
<p>Over the network, send <code>Authorization: Bearer KEY</code>; <code>caisson keys create</code> makes one.
The same as a document for tools: <a href="/openapi.json">/openapi.json</a>.</p>
<nav>${nav} · <a href="#messages">Messages</a></nav>${sections.join("")}
<h2 id="messages">Messages</h2>${schemas.map(([name, schema]) => schemaHtml(name, schema)).join("")}
</main></body></html>`;
}

function operationHtml(path: string, verb: string, operation: Operation): string {
  const parameters = operation.parameters
    .map((parameter) =>
      row(parameter.name, `${parameter.in}, ${typeHtml(parameter.schema)}`, parameter.description),
    )
    .join("");
  const body = Object.entries(operation.requestBody?.content ?? {})
    .map(([type, { schema }]) => `<h4>Body <code>${text(type)}</code></h4>${bodyHtml(schema)}`)
    .join("");
  const answer = Object.entries(operation.responses[200].content)
    .map(([type, content]) => {
      const events = content["x-events"] ? ` Events: ${content["x-events"].map(code).join(", ")}.` : "";
      return `<h4>Answer <code>${text(type)}</code></h4><p>${typeHtml(content.schema)}.${events}</p>`;
    })
    .join("");
  return `<details id="${id(operation.operationId)}"><summary><b class="${id(verb)}">${text(verb.toUpperCase())}</b> <code>${text(path)}</code> <span>${text(operation.summary ?? operation.operationId)}</span></summary>
<p>${text(operation.description ?? "")}</p><p>Scope: ${code(operation["x-scope"])}</p>
${parameters === "" ? "" : `<h4>Parameters</h4><table>${parameters}</table>`}${body}${answer}</details>`;
}

function bodyHtml(schema: Schema): string {
  return schema.properties === undefined ? `<p>${typeHtml(schema)}</p>` : propertiesHtml(schema);
}

function schemaHtml(name: string, schema: Schema): string {
  return `<details id="${id(`m-${name}`)}"><summary><code>${text(name)}</code></summary><p>${text(schema.description ?? "")}</p>${propertiesHtml(schema)}</details>`;
}

function propertiesHtml(schema: Schema): string {
  const rows = Object.entries(schema.properties ?? {}).map(([name, property]) =>
    row(name, typeHtml(property), property.description),
  );
  return rows.length === 0 ? "" : `<table>${rows.join("")}</table>`;
}

function row(name: string, type: string, description = ""): string {
  return `<tr><td>${code(name)}</td><td>${type}</td><td>${text(description)}</td></tr>`;
}

function typeHtml(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split("/").at(-1)!;
    return `<a href="#${id(`m-${name}`)}">${text(name)}</a>`;
  }
  if (schema.items !== undefined) return `list of ${typeHtml(schema.items)}`;
  if (typeof schema.additionalProperties === "object")
    return `map to ${typeHtml(schema.additionalProperties)}`;
  return text(schema.contentEncoding ?? schema.format ?? schema.type ?? "bytes");
}

const code = (value: string) => `<code>${text(value)}</code>`;
const id = (value: string) => value.replace(/[^A-Za-z0-9-]/g, "-");

/** Escapes, and sets what stands between backquotes as code. */
function text(value: string): string {
  const escaped = value.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
  return escaped.replace(/`([^`]+)`/g, "<code>$1</code>");
}

const style = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}main{max-width:60rem;margin:2rem auto;padding:0 1rem}
small{font-weight:400;opacity:.6}code{font:.9em ui-monospace,monospace}details{border-top:1px solid #8884;padding:.4rem 0}
summary{cursor:pointer}summary span{opacity:.75}table{border-collapse:collapse;width:100%}td{vertical-align:top;padding:.2rem .8rem .2rem 0;border-top:1px solid #8882}
b{display:inline-block;min-width:4.5rem}.get{color:#1a7f37}.post{color:#0969da}.put{color:#9a6700}.delete{color:#cf222e}h4{margin:.8rem 0 .2rem}`;
