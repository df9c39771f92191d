import { CaissonError, ImageService, rules, type ServedService, serve } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { invalid } from "./check.ts";

export function imageService(engine: Engine): ServedService {
  return serve(ImageService, {
    async listImages() {
      return { images: await engine.images.list() };
    },
    async *importImage({ source, name }, call) {
      if (source.case === undefined) throw invalid("`path` or `docker` must name what to import");
      const from =
        source.case === "path" ? { path: checkText(source.value) } : { docker: checkName(source.value) };
      for await (const event of engine.images.import(from, name && checkName(name), call)) {
        if ("image" in event) yield { event: { case: "image", value: event.image } };
        else yield { event: { case: "progress", value: event.progress } };
      }
    },
    async removeImage({ name }, call) {
      return { bytes: BigInt(await engine.images.remove(checkName(name), call)) };
    },
    async collectImages() {
      const { bytes, layers } = await engine.images.collect();
      return { bytes: BigInt(bytes), layers };
    },
  });
}

function checkName(name: string): string {
  if (name === "") throw invalid("`name` is missing");
  if (!/^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,254}$/.test(name))
    throw new CaissonError("IMAGE_NOT_FOUND", "there is no image of such a name");
  return name;
}

function checkText(path: string): string {
  if (path === "" || path.length > rules.paths.max_bytes || path.includes("\0"))
    throw invalid("`path` is not a path");
  return path;
}
