import { type Command, commonOptions } from "./command.ts";
import type { Option } from "./option.ts";

interface Entry {
  path: string[];
  command: Command;
}

/** Every command and subcommand with the words that lead to it. */
export function entries(commands: readonly Command[], path: string[] = []): Entry[] {
  return commands.flatMap((command) => {
    const here = { path: [...path, command.name], command };
    return command.commands ? [here, ...entries(command.commands, here.path)] : [here];
  });
}

function optionsOf(command: Command): [string, Option][] {
  const all: Record<string, Option> = { ...(command.run ? command.options : {}), ...commonOptions };
  return Object.entries(all).filter(([, option]) => !option.hidden);
}

/** The words that may follow a command. */
function wordsOf(command: Command): string[] {
  const choices = (command.positionals ?? []).flatMap((place) => place.choices ?? []);
  const subcommands = (command.commands ?? []).map((sub) => sub.name);
  const options = optionsOf(command).flatMap(([name, { short }]) =>
    short ? [`--${name}`, `-${short}`] : [`--${name}`],
  );
  return [...subcommands, ...choices, ...options];
}

/** Options that take a value: the word after them completes as a file. */
function valued(command: Command): string[] {
  return optionsOf(command)
    .filter(([, option]) => option.kind !== "flag")
    .flatMap(([name, { short }]) => (short ? [`--${name}`, `-${short}`] : [`--${name}`]));
}

export function bashCompletion(commands: readonly Command[]): string {
  const cases = entries(commands).map(
    ({ path, command }) =>
      `    "${path.join(" ")}") words="${wordsOf(command).join(" ")}"; valued=" ${valued(command).join(" ")} " ;;`,
  );
  const top = commands.map(({ name }) => name).join(" ");
  return `# Completion of caisson for bash: source <(caisson completion bash)
_caisson() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path="" word words valued i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    [[ $word == -- ]] && { COMPREPLY=($(compgen -f -c -- "$cur")); return; }
    [[ $word == -* ]] && continue
    if _caisson_words "\${path:+$path }$word"; then path="\${path:+$path }$word"; else break; fi
  done
  if [[ -z $path ]]; then words="${top} --help --version"; valued=""; else _caisson_words "$path"; fi
  if [[ $valued == *" $prev "* ]]; then COMPREPLY=($(compgen -f -- "$cur")); return; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  [[ \${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- "$cur"))
}
_caisson_words() {
  case "$1" in
${cases.join("\n")}
    *) return 1 ;;
  esac
}
complete -o filenames -F _caisson caisson
`;
}

export function zshCompletion(commands: readonly Command[]): string {
  const quote = (text: string) => text.replaceAll("'", "'\\''").replaceAll(":", "\\:");
  const cases = entries(commands).map(({ path, command }) => {
    const subs = (command.commands ?? []).map((sub) => `'${quote(sub.name)}:${quote(sub.summary)}'`);
    const choices = (command.positionals ?? [])
      .flatMap((place) => place.choices ?? [])
      .map((choice) => `'${choice}'`);
    const options = optionsOf(command).map(([name, option]) => `'--${name}:${quote(option.summary)}'`);
    return `    "${path.join(" ")}") choices=(${[...subs, ...choices, ...options].join(" ")}) ;;`;
  });
  const top = commands.map(({ name, summary }) => `'${quote(name)}:${quote(summary)}'`);
  return `#compdef caisson
# Completion of caisson for zsh: source <(caisson completion zsh)
_caisson_words() {
  case "$1" in
${cases.join("\n")}
    *) return 1 ;;
  esac
}
_caisson() {
  local -a before choices
  local path_so_far="" word
  before=("\${(@)words[2,CURRENT-1]}")
  for word in $before; do
    if [[ $word == -- ]]; then _normal; return; fi
    [[ $word == -* ]] && continue
    if _caisson_words "\${path_so_far:+$path_so_far }$word"; then
      path_so_far="\${path_so_far:+$path_so_far }$word"
    else
      break
    fi
  done
  if [[ -z $path_so_far ]]; then choices=(${top.join(" ")}); else _caisson_words "$path_so_far"; fi
  _describe caisson choices || _files
}
compdef _caisson caisson
`;
}

export function fishCompletion(commands: readonly Command[]): string {
  const quote = (text: string) => text.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
  const lines = commands.map(
    ({ name, summary }) =>
      `complete -c caisson -n __fish_use_subcommand -f -a ${name} -d '${quote(summary)}'`,
  );
  for (const { path, command } of entries(commands)) {
    const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
    const condition = `-n '${seen}'`;
    for (const sub of command.commands ?? []) {
      lines.push(`complete -c caisson ${condition} -f -a ${sub.name} -d '${quote(sub.summary)}'`);
    }
    for (const place of command.positionals ?? []) {
      if (place.choices) lines.push(`complete -c caisson ${condition} -f -a '${place.choices.join(" ")}'`);
    }
    for (const [name, option] of optionsOf(command)) {
      const short = option.short ? ` -s ${option.short}` : "";
      const takes =
        option.kind === "flag" ? "" : option.choices ? ` -x -a '${option.choices.join(" ")}'` : " -r";
      lines.push(`complete -c caisson ${condition} -l ${name}${short}${takes} -d '${quote(option.summary)}'`);
    }
  }
  return `# Completion of caisson for fish: caisson completion fish | source\n${lines.join("\n")}\n`;
}
