export { type TerminalOptions, terminalService } from "./service.ts";
