import type { DescEnum, DescField, DescFile, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";

/** Numbers of the lists in google.protobuf.FileDescriptorProto and what it contains. */
const inFile = { message: 4, enum: 5, service: 6 };
const inMessage = { field: 2, message: 3, enum: 4 };
const inService = { method: 2 };
const inEnum = { value: 2 };

type Described = DescMessage | DescEnum | DescService | DescField | DescMethod;

const byFile = new WeakMap<DescFile, Map<string, string>>();

/** The comment that stands before a declaration, as one text; empty where there is none. */
export function commentOf(desc: Described): string {
  return lookUp(fileOf(desc), pathOf(desc));
}

/** The comment before one value of an enum. */
export function commentOfValue(desc: DescEnum, index: number): string {
  return lookUp(desc.file, [...pathOf(desc), inEnum.value, index]);
}

function lookUp(file: DescFile, path: number[]): string {
  let comments = byFile.get(file);
  if (comments === undefined) {
    comments = new Map();
    for (const { path: at, leadingComments } of file.proto.sourceCodeInfo?.location ?? []) {
      comments.set(at.join("."), leadingComments.replace(/^ /gm, "").replace(/\s+/g, " ").trim());
    }
    byFile.set(file, comments);
  }
  return comments.get(path.join(".")) ?? "";
}

function fileOf(desc: Described): DescFile {
  if (desc.kind === "rpc") return desc.parent.file;
  return desc.kind === "field" ? desc.parent.file : desc.file;
}

function pathOf(desc: Described): number[] {
  switch (desc.kind) {
    case "service":
      return [inFile.service, desc.file.services.indexOf(desc)];
    case "rpc":
      return [...pathOf(desc.parent), inService.method, desc.parent.methods.indexOf(desc)];
    case "field":
      return [...pathOf(desc.parent), inMessage.field, desc.parent.fields.indexOf(desc)];
    case "message":
      if (desc.parent === undefined) return [inFile.message, desc.file.messages.indexOf(desc)];
      return [...pathOf(desc.parent), inMessage.message, desc.parent.nestedMessages.indexOf(desc)];
    case "enum":
      if (desc.parent === undefined) return [inFile.enum, desc.file.enums.indexOf(desc)];
      return [...pathOf(desc.parent), inMessage.enum, desc.parent.nestedEnums.indexOf(desc)];
  }
}
