/** `validate`: every mistake in manifests and in podsched.yaml, without an agent. Judges with the very same functions as the agent does. */
import { basename } from 'node:path';
import type { KeyText, Problem } from '../api/objects.ts';
import type { ValidateOptions as NodeAllows } from '../api/validate.ts';
import { decodeFile } from '../config/decode.ts';
import { configurationFile, isManifestName } from '../config/names.ts';
import type { FileText } from '../world/folder.ts';

export interface FileToValidate {
  /** As the person wrote it; `-` is standard input. */
  readonly path: string;
  readonly content: FileText['content'];
}

export interface Validated {
  readonly path: string;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  readonly objects: readonly KeyText[];
}

export interface ValidateOptions {
  readonly strict: boolean;
  /** Judges a podsched.yaml. */
  readonly checkConfiguration: (file: { readonly path: string; readonly text: string }) => {
    readonly problems: readonly Problem[];
    readonly warnings: readonly Problem[];
    readonly config?: { readonly allowedUnsafeSysctls: readonly string[]; readonly devices: Readonly<Record<string, readonly string[]>> };
  };
}

/** Judges each file by itself, with what a podsched.yaml among them allows, and names objects that stand in two of them. */
export function validateFiles(files: readonly FileToValidate[], o: ValidateOptions): Validated[] {
  const seen = new Map<KeyText, string>();
  const configs = files.flatMap(({ path, content }) =>
    content.ok && isConfiguration(path, content) ? (o.checkConfiguration({ path, text: textOf(content.bytes) }).config ?? []) : [],
  );
  const allowedUnsafeSysctls = configs.flatMap((config) => config.allowedUnsafeSysctls);
  // which classes the node has, its configuration says, and without it nobody
  const deviceClasses = configs.length === 0 ? undefined : configs.flatMap((config) => Object.keys(config.devices));
  return files.map((file) => {
    const result = validateFile(file, o, { allowedUnsafeSysctls, ...(deviceClasses !== undefined && { deviceClasses }) });
    const twice = result.objects.flatMap((key): Problem[] => {
      const first = seen.get(key);
      if (first === undefined) seen.set(key, file.path);
      return first === undefined
        ? []
        : [{ path: 'metadata.name', file: file.path, expected: 'each object in one file', got: `${key}, which ${first} has too` }];
    });
    return { ...result, warnings: [...result.warnings, ...twice] };
  });
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

const isConfiguration = (path: string, content: FileText['content']): boolean =>
  basename(path) === configurationFile || (content.ok && /^["']?kind["']?:\s*["']?PodschedConfiguration\b/m.test(textOf(content.bytes)));

function validateFile({ path, content }: FileToValidate, o: ValidateOptions, node: NodeAllows): Validated {
  if (content.ok && isConfiguration(path, content)) {
    const { problems, warnings } = o.checkConfiguration({ path, text: textOf(content.bytes) });
    return { path, problems, warnings, objects: [] };
  }
  const shown = path === '-' ? 'stdin' : path;
  const decoded = decodeFile({ name: shown, content }, { strict: o.strict, ...node });
  const warnings = [...decoded.warnings, ...decoded.objects.flatMap((d) => d.warnings)].map((w) => ({ ...w, file: shown }));
  const name = basename(path);
  if (path !== '-' && decoded.problems.length === 0 && !isManifestName(name)) {
    warnings.push({
      path: '',
      file: shown,
      expected: 'a name that ends in .yaml, .yml or .json',
      got: `${name}, which the agent does not read`,
    });
  }
  return { path, problems: decoded.problems, warnings, objects: decoded.objects.map((d) => d.key) };
}
