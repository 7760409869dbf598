/**
 * `sign`: a signature beside a file (`x.yaml.sig`), or an envelope of one object for a topic. What is signed says for whom it is and which
 * generation: without that a node would refuse it, so it is not signed. The manifest itself is never changed.
 */

import { stat, writeFile } from 'node:fs/promises';
import { audienceAnnotation, generationAnnotation, generationOf } from '../api/delivery.ts';
import type { Plain } from '../api/plain.ts';
import { maxRetainedBytes } from '../api/topics.ts';
import { manifestJson, manifestYaml, payloadTypes } from '../policy/dsse.ts';
import { readSigningKey, signEnvelope } from '../policy/signing.ts';
import { isAudience } from '../policy/trust.ts';
import { codeOf } from '../world/errno.ts';
import { harmless } from '../world/terminal.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import { annotationsOf, withAnnotations } from './rawObjects.ts';
import { type Item, readInput, readItems } from './signed.ts';

export interface SignOptions {
  /** `-`: standard input. */
  readonly file: string;
  /** Private key, in PEM. */
  readonly key: string;
  /** With `envelope`: put into the object. */
  readonly audience?: string;
  readonly generation?: string;
  readonly envelope: boolean;
  /** `-`: standard output. */
  readonly output?: string;
}

export interface SignWorld {
  readonly stdin: () => Promise<Uint8Array>;
}

/** Signs and writes. What must stand in it and does not is named, and nothing is written. */
export async function sign(o: SignOptions, world: SignWorld, print: Pick<Printer, 'out' | 'err'>): Promise<number> {
  const bytes = await readInput(o.file, world.stdin);
  const items = readItems(o.file, bytes);
  const pem = await readKey(o.key, print);
  if (o.envelope) return write(envelopeOf(items, o, pem), o.output ?? '-', o, print);
  if (o.audience !== undefined || o.generation !== undefined)
    throw new CommandError(
      exitCodes.usage,
      `a file is signed as it is: write ${audienceAnnotation} and ${generationAnnotation} into it, or say --envelope`,
    );
  const other = items.find((item) => item.kind !== 'manifest');
  if (other !== undefined) throw new CommandError(exitCodes.usage, `a ${other.name} goes over MQTT: say --envelope`);
  if (o.file === '-' && o.output === undefined)
    throw new CommandError(exitCodes.usage, 'standard input has no name to put .sig behind: say -o FILE');
  refuseUnsaid(items.flatMap((item) => missing(item, item.raw)));
  const type = o.file.endsWith('.json') ? manifestJson : manifestYaml;
  return write(signEnvelope(bytes, type, pem, { detached: true }), o.output ?? `${o.file}.sig`, o, print);
}

function envelopeOf(items: readonly Item[], o: SignOptions, pem: string): string {
  const [item] = items;
  if (item === undefined || items.length > 1)
    throw new CommandError(exitCodes.usage, `an envelope holds one object, and ${o.file} has ${items.length}`);
  if (o.audience !== undefined && !isAudience(o.audience))
    throw new CommandError(exitCodes.usage, `--audience ${o.audience}: a node, group:<group> or * is meant`);
  if (o.generation !== undefined && generationOf(o.generation) === undefined)
    throw new CommandError(exitCodes.usage, `--generation ${o.generation}: a whole number is meant`);
  const object = item.kind === 'manifest' ? announced(item.raw, o) : withFields(item, o);
  refuseUnsaid(missing(item, object));
  const type = item.kind === 'manifest' ? manifestJson : (payloadTypes[item.kind][0] ?? '');
  const envelope = signEnvelope(Buffer.from(JSON.stringify(object)), type, pem);
  if (envelope.length > maxRetainedBytes)
    throw new CommandError(
      exitCodes.failed,
      `the envelope has ${envelope.length} bytes; a retained message has room for ${maxRetainedBytes}`,
    );
  return envelope;
}

function announced(raw: Plain, { audience, generation }: SignOptions): Plain {
  if (audience === undefined && generation === undefined) return raw;
  return withAnnotations(raw, {
    ...(audience !== undefined && { [audienceAnnotation]: audience }),
    ...(generation !== undefined && { [generationAnnotation]: generation }),
  });
}

function withFields({ raw, kind }: Item, { audience, generation }: SignOptions): Plain {
  if (kind === 'command') {
    if (audience !== undefined || generation !== undefined)
      throw new CommandError(exitCodes.usage, 'a command has no audience and no generation: it names node, bootID and session');
    return raw;
  }
  return { ...raw, ...(audience !== undefined && { audience }), ...(generation !== undefined && { generation: Number(generation) }) };
}

/** What a node would miss in it. */
function missing({ name, kind }: Item, object: Plain): string[] {
  const lacks = (what: string, how: string): string => `${name} has no ${what}, and a node takes nothing signed without: ${how}`;
  switch (kind) {
    case 'manifest': {
      const annotations = annotationsOf(object);
      return [
        ...(isAudience(annotations[audienceAnnotation] ?? '')
          ? []
          : [lacks('audience', `annotation ${audienceAnnotation}: a node, group:<group> or "*"`)]),
        ...(generationOf(annotations[generationAnnotation]) === undefined
          ? [lacks('generation', `annotation ${generationAnnotation}: "1", and more with each change`)]
          : []),
      ];
    }
    case 'index':
    case 'config':
      return [
        ...(typeof object.audience === 'string' && isAudience(object.audience) ? [] : [lacks('audience', '--audience')]),
        ...(Number.isSafeInteger(object.generation) ? [] : [lacks('generation', '--generation')]),
      ];
    case 'command':
      return ['id', 'node', 'verb', 'bootID', 'session'].flatMap((field) =>
        object[field] === undefined ? [lacks(field, 'node, bootID and session are those of its online topic')] : [],
      );
  }
}

function refuseUnsaid(mistakes: readonly string[]): void {
  if (mistakes.length > 0) throw new CommandError(exitCodes.failed, mistakes.join('\n'));
}

async function readKey(path: string, print: Pick<Printer, 'err'>): Promise<string> {
  const pem = new TextDecoder().decode(await readInput(path, async () => new Uint8Array()));
  try {
    readSigningKey(pem);
  } catch (e) {
    throw new CommandError(exitCodes.failed, `${path}: ${e instanceof Error ? e.message : String(e)}`);
  }
  const { mode } = await stat(path);
  if ((mode & 0o077) !== 0) print.err(`warning: others may read ${harmless(path)}: chmod 600\n`);
  return pem;
}

async function write(text: string, output: string, { file }: SignOptions, print: Pick<Printer, 'out' | 'err'>): Promise<number> {
  if (output === '-') {
    print.out(`${text}\n`);
    return exitCodes.done;
  }
  await writeFile(output, `${text}\n`).catch((e: unknown) => {
    throw new CommandError(exitCodes.failed, `${output} cannot be written (${codeOf(e)})`, { cause: e });
  });
  print.out(`${harmless(file)}: signed in ${harmless(output)}\n`);
  return exitCodes.done;
}
