// How each agent is called, and how it is told where its model is.

export interface Agent {
  name: "claude" | "codex" | "gemini";
  /** The variable that holds its key. */
  key: string;
  /** The header that carries it, with what stands before it. */
  header: [name: string, before: string];
  /** Variables, for the profile. */
  env(url: string): Record<string, string>;
  /** A file of its own directory, written before its first run. */
  settings?: [name: string, text: string];
  /** One task, without a person: what is done is printed as lines of JSON. */
  task(url: string): string[];
  /** Does it print words as they come? */
  printsWords: boolean;
}

export const agents: readonly Agent[] = [
  {
    name: "claude",
    key: "ANTHROPIC_API_KEY",
    header: ["x-api-key", ""],
    env: (url) => ({ ANTHROPIC_BASE_URL: url, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" }),
    task: () => [
      ...["claude", "-p", "do it", "--dangerously-skip-permissions"],
      ...["--output-format", "stream-json", "--verbose", "--include-partial-messages"],
    ],
    printsWords: true,
  },
  {
    name: "codex",
    key: "OPENAI_API_KEY",
    header: ["authorization", "Bearer "],
    env: () => ({}),
    // The newest models have tools of another kind; an unknown name gets the plain ones.
    task: (url) => [
      ...["codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-m", "scripted"],
      ...["-c", "model_provider=test", "-c", providerOf(url), "do it"],
    ],
    printsWords: false,
  },
  {
    name: "gemini",
    key: "GEMINI_API_KEY",
    header: ["x-goog-api-key", ""],
    // It runs git without any configuration but the repository's own, so who commits is said by variables.
    env: (url) => ({
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
      GIT_AUTHOR_NAME: "An agent",
      GIT_AUTHOR_EMAIL: "agent@example.org",
      GIT_COMMITTER_NAME: "An agent",
      GIT_COMMITTER_EMAIL: "agent@example.org",
    }),
    settings: ["settings.json", '{"security":{"auth":{"selectedType":"gemini-api-key"}}}'],
    task: () => ["gemini", "-m", "scripted", "--yolo", "-o", "stream-json", "-p", "do it"],
    printsWords: true,
  },
];

function providerOf(url: string): string {
  return `model_providers.test={name="test",base_url="${url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}`;
}
