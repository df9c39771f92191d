import assert from "node:assert/strict";
import { test } from "node:test";
import { ListSandboxesRequestSchema, SubscribeEventsRequestSchema } from "@caisson/contract";
import { queryToJson } from "./query.ts";
import { matchTemplate, parseTemplate } from "./template.ts";

const match = (template: string, path: string) =>
  matchTemplate(parseTemplate(template), path.slice(1).split("/"));

test("a path fits a template segment by segment, verb included", () => {
  assert.deepEqual(match("/v1/a/{id}", "/v1/a/x%20y"), { id: "x y" });
  assert.deepEqual(match("/v1/a/{id}:exec", "/v1/a/session:one:exec"), { id: "session:one" });
  assert.deepEqual(match("/v1/a/{id}", "/v1/a/session:one"), { id: "session:one" });
  assert.deepEqual(match("/v1/a/{id}/b:move", "/v1/a/1/b:move"), { id: "1" });
  for (const path of [
    "/v1/a",
    "/v1/a/",
    "/v1/a/x/",
    "/v1/a//x",
    "/v1//a/x",
    "/v1/a/.",
    "/v1/a/%2E%2e",
    "/v1/a/%",
    "/v1/a/x%2Fy",
    "/V1/a/x",
  ]) {
    assert.equal(match("/v1/a/{id}", path), undefined, path);
  }
  assert.equal(match("/v1/a/{id}:exec", "/v1/a/:exec"), undefined);
});

test("templates that are not understood are refused when the routes are made", () => {
  for (const template of ["v1/a", "/v1/{a=**}", "/v1/*", "/v1/{a.b}", "/v1/a:", "/v1/{a}x"]) {
    assert.throws(() => parseTemplate(template), template);
  }
});

test("a query is the JSON of a message", () => {
  assert.deepEqual(
    queryToJson(ListSandboxesRequestSchema, "labels[a/b]=c+d&labels[x]=%C3%BC&all&page_size=5"),
    {
      labels: { "a/b": "c d", x: "ü" },
      all: true,
      page_size: "5",
    },
  );
  assert.deepEqual(queryToJson(SubscribeEventsRequestSchema, "types=a&types=b&from=18446744073709551615"), {
    types: ["a", "b"],
    from: "18446744073709551615",
  });
  for (const query of [
    "labels=x",
    "labels[__proto__]=x",
    "all[x]=1",
    "nope=1",
    "all=maybe",
    "&",
    "a".repeat(300),
    "all&".repeat(300),
  ]) {
    assert.throws(
      () => queryToJson(ListSandboxesRequestSchema, query),
      { code: "INVALID_INPUT" },
      query.slice(0, 30),
    );
  }
});
