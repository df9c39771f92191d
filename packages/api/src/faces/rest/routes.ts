import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { collect, type ServedService } from "@caisson/contract";
import { type HttpRule, http } from "@caisson/contract/annotations";
import { createRoutes, type Route } from "../routes.ts";
import { matchTemplate, parseTemplate, type Template } from "./template.ts";

/** A method as HTTP sees it. */
export interface RestRoute extends Route {
  verb: string;
  path: string;
  template: Template;
  /** `*`: the whole message as JSON; a field: its raw bytes; empty: nothing. */
  body: string;
  /** The field whose value is the answer; undefined: the whole message. */
  responseField: DescField | undefined;
  /** A stream whose messages are merged into one document. */
  collects: boolean;
}

export interface RestMatch {
  route: RestRoute;
  values: Record<string, string>;
}

/** Every route of the contract's google.api.http annotations. */
export function createRestRoutes(services: readonly ServedService[]): RestRoute[] {
  const routes: RestRoute[] = [];
  for (const route of createRoutes(services).values()) {
    if (!hasOption(route.method, http)) continue;
    const rule = getOption(route.method, http);
    const { verb, path } = patternOf(rule);
    routes.push({
      ...route,
      verb,
      path,
      template: parseTemplate(path),
      body: rule.body,
      responseField: responseField(route, rule),
      collects: getOption(route.method, collect),
    });
  }
  // A route with a verb is more particular than one whose last field would swallow it.
  return routes.sort((a, b) => Number(b.template.verb !== "") - Number(a.template.verb !== ""));
}

export function findRoute(routes: readonly RestRoute[], verb: string, path: string): RestMatch | undefined {
  const segments = path.slice(1).split("/");
  for (const route of routes) {
    if (route.verb !== verb) continue;
    const values = matchTemplate(route.template, segments);
    if (values !== undefined) return { route, values };
  }
  return undefined;
}

function patternOf(rule: HttpRule): { verb: string; path: string } {
  const { case: verb, value: path } = rule.pattern;
  if (verb === undefined || verb === "custom")
    throw new Error("only the standard HTTP methods are supported");
  return { verb: verb.toUpperCase(), path };
}

function responseField(route: Route, rule: HttpRule): DescField | undefined {
  if (rule.responseBody === "") return undefined;
  const field = route.method.output.fields.find(({ name }) => name === rule.responseBody);
  if (field === undefined) throw new Error(`${route.method.name}: no field ${rule.responseBody}`);
  return field;
}
