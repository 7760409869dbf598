/** What `sign` and `verify` share: files as they are read, and what is in them that a signature is about. */

import { readFile } from 'node:fs/promises';
import { isPlain, type Plain } from '../api/plain.ts';
import { problemText } from '../api/problems.ts';
import { parseDocuments } from '../config/yaml.ts';
import { type PayloadKind, payloadTypes } from '../policy/dsse.ts';
import { codeOf } from '../world/errno.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { itemsOf } from './rawObjects.ts';

/** As manifests have it: 1 MiB; an envelope is a third larger. */
const maxBytes = 3 << 19;

/** A file, or standard input for `-`. */
export async function readInput(path: string, stdin: () => Promise<Uint8Array>): Promise<Uint8Array> {
  const bytes = path === '-' ? await stdin() : await readFile(path).catch((e: unknown) => fail(path, e));
  if (bytes.length > maxBytes) throw new CommandError(exitCodes.failed, `${path} has ${bytes.length} bytes; at most ${maxBytes} are read`);
  return bytes;
}

function fail(path: string, e: unknown): never {
  const code = codeOf(e);
  throw new CommandError(
    code === 'ENOENT' ? exitCodes.notFound : exitCodes.failed,
    `${path}: ${code === 'ENOENT' ? 'no such file' : code}`,
    { cause: e },
  );
}

/** A thing to be signed, or that was. */
export interface Item {
  readonly raw: Plain;
  /** `Pod/default/web`, `Command`, for people. */
  readonly name: string;
  readonly kind: PayloadKind;
}

const ownKinds: Readonly<Record<string, PayloadKind>> = { Command: 'command', DesiredIndex: 'index', NodeConfig: 'config' };

/** Every object of a text, Lists taken apart. Rejects with every mistake of the YAML. */
export function readItems(path: string, bytes: Uint8Array): readonly Item[] {
  const { documents, problems } = parseDocuments(new TextDecoder().decode(bytes));
  if (problems.length > 0) throw new CommandError(exitCodes.failed, problems.map((p) => problemText({ ...p, file: path })).join('\n'));
  const all = documents.flatMap(({ value }) => (value === null ? [] : itemsOf(value)));
  if (all.length === 0) throw new CommandError(exitCodes.failed, `${path}: there is no object in it`);
  return all.map((raw) => {
    if (!isPlain(raw) || typeof raw.kind !== 'string')
      throw new CommandError(exitCodes.failed, `${path}: it holds something without a kind`);
    const kind = Object.hasOwn(ownKinds, raw.kind) ? ownKinds[raw.kind] : undefined;
    if (kind !== undefined) return { raw, name: raw.kind, kind };
    const { namespace = 'default', name } = isPlain(raw.metadata) ? raw.metadata : {};
    if (typeof name !== 'string') throw new CommandError(exitCodes.failed, `${path}: a ${raw.kind} without metadata.name`);
    return { raw, name: `${raw.kind}/${namespace}/${name}`, kind: 'manifest' as const };
  });
}

/** What a payload type is for; undefined: nothing of ours. */
export const kindOfType = (payloadType: string): PayloadKind | undefined =>
  (Object.keys(payloadTypes) as PayloadKind[]).find((kind) => payloadTypes[kind].includes(payloadType));
