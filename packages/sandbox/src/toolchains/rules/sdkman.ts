import type { Look } from "../look.ts";
import type { ToolchainRule } from "../toolchain.ts";

/** Variables by which programs find a candidate that is in use. */
const homes: Readonly<Record<string, string>> = {
  java: "JAVA_HOME",
  maven: "MAVEN_HOME",
  gradle: "GRADLE_HOME",
  groovy: "GROOVY_HOME",
  kotlin: "KOTLIN_HOME",
  scala: "SCALA_HOME",
};

/** Java and its tools by SDKMAN!: `~/.sdkman/candidates/java/current/bin`. */
export const sdkman: ToolchainRule = {
  name: "sdkman",
  detect({ path }, look) {
    const used = path.flatMap((entry) => {
      const [, root, candidate, version] =
        /^(.+\/\.sdkman\/candidates)\/([a-z0-9]+)\/([^/]+)\/bin$/.exec(entry) ?? [];
      return root && look.isDirectory(entry) ? [{ entry, root, candidate: candidate!, version }] : [];
    });
    const [first] = used;
    if (first === undefined) return undefined;
    const candidates = [...new Set(used.map(({ root, candidate }) => `${root}/${candidate}`))];
    return {
      binds: candidates,
      covers: candidates.flatMap((candidate) => secretsOf(candidate, look)),
      env: Object.fromEntries(
        used.flatMap(({ root, candidate, version }) =>
          homes[candidate] ? [[homes[candidate], `${root}/${candidate}/${version}`]] : [],
        ),
      ),
      path: new Map(used.map(({ entry }) => [entry, [entry]])),
    };
  },
};

/** Maven reads its own settings at every start and fails if it may not: they are covered only if they hold passwords. */
function secretsOf(candidate: string, look: Look): string[] {
  return look.names(candidate).flatMap((version) => {
    const properties = `${candidate}/${version}/gradle.properties`;
    const settings = `${candidate}/${version}/conf/settings.xml`;
    const held = look.text(settings).replace(/<!--.*?-->/gs, "");
    return [
      ...(look.exists(properties) ? [properties] : []),
      ...(/<(?:password|passphrase|privateKey)>/.test(held) ? [settings] : []),
    ];
  });
}
