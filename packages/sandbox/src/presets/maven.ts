// https://maven.apache.org/settings.html and /guides/mini/guide-mirror-settings.html: repositories of settings and of
// the project, each replaced by the first mirror whose `mirrorOf` names it.
import { join } from "node:path";
import { Places, withoutCredentials } from "./place.ts";
import type { Preset, PresetSource } from "./preset.ts";
import { readProjectText, readText } from "./read.ts";
import { mavenSettings } from "./told.ts";
import { askFor } from "./tool.ts";
import { elements, textOf, withoutComments } from "./xml.ts";

interface Repository {
  id: string;
  url: string;
  from: string;
  project: boolean;
}

interface Mirror extends Repository {
  of: string[];
}

/** Maven's own repository: where that lies, Maven knows. */
const central: Repository = { id: "central", url: "", from: "", project: false };

export const maven: Preset = async (source) => {
  const places = new Places("maven");
  const { mirrors, repositories } = await configured(source);
  const known = repositories.some(({ id }) => id === central.id);
  if (!known && !mirrors.some((mirror) => replaces(mirror, central)))
    places.addOwn(await askMaven(source), "mvn --offline");
  for (const repository of [...(known ? [] : [central]), ...repositories]) {
    const { url, from, project } = mirrors.find((mirror) => replaces(mirror, repository)) ?? repository;
    if (url === "") continue;
    if (/^(https?:)/.test(url)) places.add(url, from, project);
    else if (!url.startsWith("file:"))
      places.notes.push(`${from} names a repository that cannot be understood`);
  }
  // Files of the project are inside anyway.
  const told = (one: Repository) => !one.project && /^https?:/.test(one.url) && URL.canParse(one.url);
  const clean = <R extends Repository>(one: R): R => ({ ...one, url: withoutCredentials(one.url) });
  places.files.push(...mavenSettings(mirrors.filter(told).map(clean), repositories.filter(told).map(clean)));
  return places.resolved;
};

/** Maven has no command for it either: set a task that needs a repository, it says to which one it may not go. */
function askMaven(source: PresetSource): Promise<string[] | undefined> {
  const parent =
    "<groupId>caisson.ask</groupId><artifactId>parent</artifactId><version>1</version><relativePath/>";
  const pom = `<project><modelVersion>4.0.0</modelVersion><parent>${parent}</parent><artifactId>ask</artifactId><packaging>pom</packaging></project>`;
  const argv = ["mvn", "--offline", "--batch-mode", "-Dmaven.repo.local=repository", "validate"] as const;
  const refused = /Cannot access \S+ \((https?:[^)\s]+)\) in offline mode/g;
  // It lives for a moment: half as long, if it prepares for nothing longer.
  const env = { MAVEN_OPTS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" };
  return askFor(refused, { argv, files: { "pom.xml": pom }, env }, source);
}

async function configured({ home, env, project, root = "/" }: PresetSource) {
  const mirrors: Mirror[] = [];
  const repositories: Repository[] = [];
  const own = env.MAVEN_HOME || env.M2_HOME;
  // The user's settings beat those of the installation.
  const files = [
    join(home, ".m2/settings.xml"),
    ...(own ? [join(own, "conf/settings.xml")] : []),
    join(root, "etc/maven/settings.xml"),
    join(root, "usr/share/maven/conf/settings.xml"),
  ];
  const substitute = (text: string) =>
    text.replace(/\$\{env\.([A-Za-z_][A-Za-z0-9_]*)\}/g, (whole, name: string) => env[name] ?? whole);
  for (const path of files) {
    const text = withoutComments(substitute((await readText(path)) ?? ""));
    for (const mirror of elements(text, "mirror")) {
      const of = textOf(mirror, "mirrorOf")
        .split(",")
        .map((word) => word.trim());
      mirrors.push({ id: textOf(mirror, "id"), url: textOf(mirror, "url"), of, from: path, project: false });
    }
    repositories.push(...repositoriesOf(text, path, false));
  }
  if (project) {
    const path = join(project, "pom.xml");
    repositories.push(...repositoriesOf(withoutComments((await readProjectText(path)) ?? ""), path, true));
  }
  return { mirrors, repositories };
}

function repositoriesOf(text: string, from: string, project: boolean): Repository[] {
  // Where a project publishes to is not where it fetches from.
  const fetched = text.replace(/<distributionManagement>[\s\S]*?<\/distributionManagement>/g, "");
  return ["repository", "pluginRepository"]
    .flatMap((name) => [...elements(fetched, name)])
    .map((body) => ({ id: textOf(body, "id"), url: textOf(body, "url"), from, project }))
    .filter(({ url }) => url !== "");
}

function replaces({ of }: Mirror, { id, url }: Repository): boolean {
  if (of.includes(`!${id}`)) return false;
  const external = !/^(file:|https?:\/\/(localhost|127\.0\.0\.1)(:|\/|$))/.test(url);
  return of.some(
    (word) =>
      word === id ||
      word === "*" ||
      (word === "external:*" && external) ||
      (word === "external:http:*" && external && url.startsWith("http:")),
  );
}
