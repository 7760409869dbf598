/** `verify`: whether a signed file or envelope is good, by whom, for whom; judged with the very functions of the agent, without an agent. */
import { basename } from 'node:path';
import type { Source } from '../api/objects.ts';
import { problemText } from '../api/problems.ts';
import { isEnvelope, looksLikeEnvelope, type Opened, openDetached, openEnvelope, type TrustedKey } from '../policy/dsse.ts';
import { KeyFolder } from '../policy/keys.ts';
import { type Distrust, judgeSigned, judgeSignedCommand, type Receiver, wordsOf } from '../policy/trust.ts';
import { decodeCommand } from '../remote/decode.ts';
import { silentLog } from '../world/log.ts';
import { harmless } from '../world/terminal.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import { type Item, kindOfType, readInput, readItems } from './signed.ts';

export interface VerifyOptions {
  /** A manifest with its `.sig` beside it, or an envelope; `-`: standard input. */
  readonly file: string;
  /** As keys.d. */
  readonly keys: string;
  /** Judged as this node would. */
  readonly node?: string;
  /** Groups of that node. */
  readonly groups?: readonly string[];
}

/** Says what it found. 0: good, and for that node where one is named; 1: not. */
export async function verify(
  o: VerifyOptions,
  world: { readonly stdin: () => Promise<Uint8Array> },
  print: Pick<Printer, 'out' | 'err'>,
): Promise<number> {
  const bytes = await readInput(o.file, world.stdin);
  const keys = await trusted(o.keys, print);
  const envelope = looksLikeEnvelope(bytes);
  const opened = envelope ? openEnvelope(bytes, keys, kindOf(bytes)) : await openFile(o, bytes, keys);
  const file = harmless(o.file);
  if (!opened.ok) {
    print.out(`${file}: ${opened.reason}: ${harmless(opened.message)}\n`);
    return exitCodes.failed;
  }
  for (const key of opened.keys) print.out(`${file}: signed by ${key.keyid} (${harmless(key.file)})\n`);
  let good = true;
  for (const item of readItems(o.file, opened.payload)) {
    if (item.kind !== kindOfType(opened.payloadType)) {
      throw new CommandError(exitCodes.failed, `${o.file}: it is signed as ${opened.payloadType}, and holds a ${item.name}`);
    }
    const wrong = judge(item, o, opened.keys, envelope);
    if (wrong !== undefined) good = false;
    print.out(
      `${harmless(item.name)}: ${harmless(wrong === undefined ? meant(item) : `${wrong.reason}: ${problemText(wrong.problem)}`)}\n`,
    );
  }
  return good ? exitCodes.done : exitCodes.failed;
}

async function openFile(o: VerifyOptions, bytes: Uint8Array, keys: readonly TrustedKey[]): Promise<Opened> {
  if (o.file === '-') return { ok: false, reason: 'Unsigned', message: 'it is no envelope' };
  const signature = await readInput(`${o.file}.sig`, async () => new Uint8Array()).catch((e: unknown) => {
    if (e instanceof CommandError && e.code === exitCodes.notFound) return undefined;
    throw e;
  });
  if (signature === undefined)
    return { ok: false, reason: 'Unsigned', message: `it is no envelope, and there is no ${basename(o.file)}.sig` };
  return openDetached(signature, bytes, keys, 'manifest');
}

async function trusted(dir: string, print: Pick<Printer, 'err'>): Promise<readonly TrustedKey[]> {
  const folder = new KeyFolder({ log: silentLog, dir, strict: () => false, store: { get: async () => undefined, put: async () => {} } });
  await folder.read();
  for (const { file, message } of folder.problems()) print.err(`warning: ${harmless(`${file} ${message}`)}\n`);
  if (folder.keys().length === 0) throw new CommandError(exitCodes.notFound, `${dir} has no key in it (*.pub, *.json)`);
  return folder.keys();
}

/** What it is signed for, by its own word; a manifest where it says nothing we know. */
function kindOf(bytes: Uint8Array) {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return (isEnvelope(value) ? kindOfType(value.payloadType) : undefined) ?? 'manifest';
  } catch {
    return 'manifest'; // opening it says what is wrong
  }
}

function judge(item: Item, o: VerifyOptions, signers: readonly TrustedKey[], envelope: boolean): Distrust | undefined {
  const { raw, kind } = item;
  if (kind === 'command') {
    const decoded = decodeCommand(Buffer.from(JSON.stringify(raw)));
    if (decoded.as !== 'command') throw new CommandError(exitCodes.failed, `${o.file}: it is no right Command`);
    const { verb = 'exec', node = '' } = decoded.command;
    return judgeSignedCommand(decoded.command, { verb, signers, required: true, node: o.node ?? node });
  }
  const words = wordsOf(raw, kind);
  const { source, receiver } = placeOf(words.audience, o, envelope);
  return judgeSigned(words, { source, receiver, signers, required: true });
}

/** Where it would be looked at: an envelope on the topic that it names; without --node, by whomever it is for. */
function placeOf(
  audience: string | undefined,
  o: VerifyOptions,
  envelope: boolean,
): { readonly source: Source; readonly receiver: Receiver } {
  const group = audience?.startsWith('group:') ? audience.slice('group:'.length) : undefined;
  const groups = o.groups ?? [];
  const named = audience === undefined || audience === '*' || group !== undefined ? '' : audience;
  const receiver = o.node === undefined ? { node: named, groups: group === undefined ? groups : [group] } : { node: o.node, groups };
  if (!envelope) return { source: `file:${basename(o.file)}`, receiver };
  if (audience === '*') return { source: 'mqtt:all', receiver };
  // of a group that the node is not in, it follows no topic
  if (group !== undefined && receiver.groups.includes(group)) return { source: `mqtt:group/${group}`, receiver };
  return { source: 'mqtt:node', receiver };
}

function meant({ kind, raw }: Item): string {
  if (kind === 'command') return `good, for ${String(raw.node)}`;
  const { audience, generation } = wordsOf(raw, kind);
  return `good, for ${audience}, generation ${generation}`;
}
