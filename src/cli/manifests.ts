/**
 * The objects that `-f` names, each by itself: judged as the agent judges them, and kept as they were written, since what stands for a node's own
 * values (`${NODE.name}`) is for the node to fill in. One mistake anywhere, and nothing of it is used.
 */

import { basename } from 'node:path';
import { readKey } from '../api/decode.ts';
import { type ApiObject, keyOf, keyText, type ObjectKey } from '../api/objects.ts';
import type { Plain } from '../api/plain.ts';
import { problemText } from '../api/problems.ts';
import type { ValidateOptions } from '../api/validate.ts';
import { decodeFile } from '../config/decode.ts';
import { configurationFile } from '../config/names.ts';
import { harmless } from '../world/terminal.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import { rawObjects, signedPayload } from './rawObjects.ts';
import { readPath } from './validate.ts';

export interface Manifest {
  readonly key: ObjectKey;
  /** As it was written. */
  readonly raw: Plain;
  /** As the agent reads it. */
  readonly object: ApiObject;
  readonly file: string;
  /** The bytes of its file, when that holds nothing else. */
  readonly whole?: Uint8Array;
  /** It lay there signed: only whole it is what was signed. */
  readonly envelope?: Uint8Array;
}

export interface ManifestOptions {
  readonly stdin: () => Promise<Uint8Array>;
  /** What the node allows that it is for. */
  readonly node: ValidateOptions;
}

/** What is needed before what needs it. */
const order = ['ConfigMap', 'Secret', 'Pod'];

/** Files, folders, `-` for standard input. Rejects, after all mistakes were printed, when there is one; when there is no object, too. */
export async function readManifests(
  paths: readonly string[],
  o: ManifestOptions,
  print: Pick<Printer, 'err'>,
): Promise<readonly Manifest[]> {
  const manifests: Manifest[] = [];
  const mistakes: string[] = [];
  for (const path of paths) {
    const files = path === '-' ? [{ path, content: { ok: true as const, bytes: await o.stdin() } }] : await readPath(path);
    for (const file of files) {
      if (basename(file.path) === configurationFile) continue;
      const name = file.path === '-' ? 'stdin' : file.path;
      const envelope = file.content.ok ? signedPayload(file.content.bytes) : undefined;
      const content = envelope === undefined ? file.content : { ok: true as const, bytes: envelope };
      const decoded = decodeFile({ name, content }, { strict: false, ...o.node });
      mistakes.push(...decoded.problems.map((p) => problemText(p)));
      for (const w of decoded.objects.flatMap((d) => d.warnings)) print.err(`warning: ${harmless(problemText(w))}\n`);
      if (decoded.problems.length > 0 || !content.ok) continue;
      const raws = rawObjects(content.bytes);
      for (const { object, key } of decoded.objects) {
        const raw = raws.find((r) => keyText(readKey(r) ?? keyOf(object)) === key);
        if (raw === undefined) {
          mistakes.push(`${name}: the name of ${key} is another on each node, and here one name is needed`);
          continue;
        }
        const alone = raws.length === 1;
        if (!alone && envelope !== undefined) mistakes.push(`${name}: what is signed must be one object`);
        manifests.push({
          key: keyOf(object),
          raw,
          object,
          file: file.path,
          ...(alone && content.ok && { whole: content.bytes }),
          ...(envelope !== undefined && file.content.ok && { envelope: file.content.bytes }),
        });
      }
    }
  }
  const twice = manifests.find((m, i) => manifests.findIndex((n) => keyText(n.key) === keyText(m.key)) !== i);
  if (twice !== undefined) mistakes.push(`${keyText(twice.key)} is given twice`);
  for (const mistake of mistakes) print.err(`${harmless(mistake)}\n`);
  if (mistakes.length > 0) throw new CommandError(exitCodes.failed, 'nothing was changed');
  if (manifests.length === 0) throw new CommandError(exitCodes.usage, `no object in ${paths.join(', ')}`);
  return manifests.sort((a, b) => order.indexOf(a.key.kind) - order.indexOf(b.key.kind));
}
