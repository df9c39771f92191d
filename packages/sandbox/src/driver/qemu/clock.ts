import { readFile } from "node:fs/promises";

const cpu = "/sys/devices/system/cpu/cpu0";

/**
 * How fast the processor's clock (TSC) goes, in kilohertz. An emulated machine reads the host's own and has to be told, since
 * measuring can hang under load. Where the speed of the processor changes, that of its clock is not what it runs at now.
 */
export async function readTscKhz(read = (path: string) => readFile(path, "utf8")): Promise<number> {
  for (const path of [`${cpu}/tsc_freq_khz`, `${cpu}/cpufreq/base_frequency`]) {
    const khz = Number(await read(path).catch(() => ""));
    if (khz > 0) return khz;
  }
  const info = await read("/proc/cpuinfo").catch(() => "");
  const gigahertz = Number(/^model name\s*:.*@ ([0-9.]+)GHz/m.exec(info)?.[1]);
  if (gigahertz > 0) return Math.round(gigahertz * 1e6);
  return Math.round(Number(/^cpu MHz\s*:\s*([0-9.]+)/m.exec(info)?.[1] ?? 2000) * 1000);
}
