import { Scope } from "@caisson/contract";
import type { HttpCall, Response } from "./types.ts";

/** Something to GET beside the contract's methods. */
export interface Page {
  /** What a caller needs. */
  scope: Scope;
  contentType: string;
  body(): Promise<string> | string;
}

const openapi: Page = {
  scope: Scope.PUBLIC,
  contentType: "application/json",
  body: async () => JSON.stringify((await import("../../openapi/document.ts")).openapiDocument()),
};

const docs: Page = {
  scope: Scope.PUBLIC,
  contentType: "text/html; charset=utf-8",
  body: async () => (await import("../../openapi/page.ts")).docsPage(),
};

/** The pages that every server has. */
export const ownPages: Readonly<Record<string, Page>> = { "/openapi.json": openapi, "/docs": docs };

export async function sendPage(page: Page, response: Response, call: HttpCall): Promise<void> {
  const body = Buffer.from(await page.body());
  response.writeHead(200, {
    "content-type": page.contentType,
    "content-length": String(body.length),
    "content-security-policy":
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-request-id": call.requestId,
  });
  response.end(body);
}
