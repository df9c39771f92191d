// Run by a daemon that is about to give way: loads what the next one would load, and ends with an error where that cannot be.
import "./daemon.ts";
import "./terminal/service.ts";
import { warm } from "@caisson/cli";
import { checkInstallation } from "./install.ts";

checkInstallation();
await warm();
