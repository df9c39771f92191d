export { type DoctorParts, diagnose } from "./diagnose.ts";
