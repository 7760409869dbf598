/**
 * `seal`: a Secret manifest with values that only one node can read. No value stands in the arguments, in what is said, or in the result: an
 * annotation in which kubectl kept the manifest is left out.
 */

import type { KeyObject } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { decodeObject } from '../api/decode.ts';
import { sealedAnnotation } from '../api/delivery.ts';
import { isPlain, type Plain } from '../api/plain.ts';
import { problemText, withoutValue } from '../api/problems.ts';
import { takeDelivery } from '../config/delivery.ts';
import { parseDocuments, toYaml } from '../config/yaml.ts';
import { lastApplied, readRecipient, sealSecret } from '../policy/seal.ts';
import { codeOf } from '../world/errno.ts';
import { harmless } from '../world/terminal.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import { annotationsOf } from './rawObjects.ts';
import { readInput, readItems } from './signed.ts';

export interface SealOptions {
  /** `-`: standard input. */
  readonly file: string;
  /** The node's public sealing key, in base64. */
  readonly recipient?: string;
  /** What the node tells of itself (`info`, `get nodes -o yaml`), with that key in it. */
  readonly info?: string;
  /** Absent, `-`: standard output. */
  readonly output?: string;
}

const sealingKeyAnnotation = 'podsched.dev/sealing-key';
const nodeReference = '${NODE.';

/** Reads, seals, writes. */
export async function seal(
  o: SealOptions,
  world: { readonly stdin: () => Promise<Uint8Array> },
  print: Pick<Printer, 'out' | 'err'>,
): Promise<number> {
  if ((o.recipient === undefined) === (o.info === undefined))
    throw new CommandError(exitCodes.usage, 'either --recipient KEY or --info FILE says for which node');
  const recipient = await recipientOf(o);
  const bytes = await readInput(o.file, world.stdin);
  const text = readItems(o.file, bytes)
    .map(({ raw, name }) => toYaml(sealed(raw, name, recipient, o.file)))
    .join('---\n');
  if (o.output === undefined || o.output === '-') {
    print.out(text);
    return exitCodes.done;
  }
  await writeFile(o.output, text).catch((e: unknown) => {
    throw new CommandError(exitCodes.failed, `${o.output} cannot be written (${codeOf(e)})`, { cause: e });
  });
  print.out(`${harmless(o.file)}: sealed in ${harmless(o.output)}\n`);
  return exitCodes.done;
}

function sealed(raw: Plain, name: string, recipient: KeyObject, file: string): unknown {
  if (raw.kind !== 'Secret') throw new CommandError(exitCodes.failed, `${file}: ${name} is no Secret, and only those are sealed`);
  if (annotationsOf(raw)[sealedAnnotation] !== undefined) throw new CommandError(exitCodes.failed, `${file}: ${name} is sealed already`);
  if (JSON.stringify(raw).includes(nodeReference))
    throw new CommandError(
      exitCodes.failed,
      `${file}: ${name} has a ${nodeReference}…} in it, which cannot be filled in where it is sealed`,
    );
  // generation, audience and the like are not the object's
  const { object, problems } = decodeObject(takeDelivery(raw).value, { strict: true });
  if (object?.kind !== 'Secret') {
    const lines = problems.map((p) => problemText(withoutValue({ ...p, file }, true)));
    throw new CommandError(exitCodes.failed, lines.join('\n'));
  }
  const result = sealSecret(object, recipient);
  const { [lastApplied]: _, ...annotations } = annotationsOf(raw);
  return { ...result, metadata: { ...result.metadata, annotations: { ...annotations, ...result.metadata.annotations } } };
}

async function recipientOf({ recipient, info }: SealOptions): Promise<KeyObject> {
  const key = recipient ?? (await keyOfInfo(info ?? ''));
  try {
    return readRecipient(key);
  } catch (e) {
    throw new CommandError(
      exitCodes.usage,
      `${recipient === undefined ? info : '--recipient'}: ${e instanceof Error ? e.message : String(e)}`,
    );
  }
}

async function keyOfInfo(path: string): Promise<string> {
  const bytes = await readInput(path, async () => new Uint8Array());
  const nodes = parseDocuments(new TextDecoder().decode(bytes)).documents.flatMap(({ value }) =>
    isPlain(value) && Array.isArray(value.items) ? value.items.filter(isPlain) : isPlain(value) ? [value] : [],
  );
  const keys = nodes.flatMap((node) => annotationsOf(node)[sealingKeyAnnotation] ?? []);
  const [key] = keys;
  if (key !== undefined && keys.length === 1) return key;
  const got = keys.length === 0 ? `no annotation ${sealingKeyAnnotation}` : `${keys.length} nodes, and one is needed`;
  throw new CommandError(exitCodes.failed, `${path}: there is ${got}`);
}
