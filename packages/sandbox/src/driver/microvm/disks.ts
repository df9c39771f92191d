import { makeBeside } from "./beside.ts";
import type { ImageTools } from "./erofs.ts";
import { makeHostImage } from "./host-image.ts";
import { makeRootImage } from "./root-image.ts";
import type { Disks, TemplateContext } from "./template.ts";

/** Makes the disks of a machine, unless they are there. Each is named after what it is made from. */
export async function makeDisks(tools: ImageTools, context: TemplateContext): Promise<Disks> {
  const { store, root, beside, progress } = context;
  const images = `${store}/images`;
  const image = root
    ? await makeRootImage(tools, images, root, progress)
    : await makeHostImage(tools, images, progress);
  return beside ? { image, beside: await makeBeside(tools, images, beside, progress) } : { image };
}
