import { accounts } from "../../support/daemon.ts";
import { daemonWall } from "./daemon.ts";
import { probe } from "./suite.ts";

for (const account of accounts()) probe(daemonWall(account), account);
