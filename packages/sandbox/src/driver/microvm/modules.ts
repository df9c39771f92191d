/**
 * The order in which kernel modules are loaded, from what `modules.dep` says: dependencies first, each once.
 * Names are those of files, without `.ko`; one that is built into the kernel is left out.
 */
export function modulesInOrder(modulesDep: string, wanted: readonly string[]): string[] {
  const dependencies = new Map<string, string[]>();
  const paths = new Map<string, string>();
  for (const line of modulesDep.split("\n")) {
    const [path, rest] = line.split(":", 2);
    if (path === undefined || rest === undefined) continue;
    dependencies.set(path, rest.trim().split(/\s+/).filter(Boolean));
    paths.set(nameOf(path), path);
  }
  const ordered: string[] = [];
  const add = (path: string) => {
    if (ordered.includes(path)) return;
    for (const dependency of dependencies.get(path) ?? []) add(dependency);
    ordered.push(path);
  };
  for (const name of wanted) {
    const path = paths.get(name);
    if (path !== undefined) add(path);
  }
  return ordered;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(/\.ko(\.[a-z]+)?$/, "");
}
