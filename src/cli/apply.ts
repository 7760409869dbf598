/** `apply -f FILE`: into the manifest folder of this machine, or with `--node`, `--group`, `--all` onto the topics of a fleet. Manners of kubectl apply. */
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { audienceAnnotation, generationAnnotation, generationOf, payloadHash, stateAnnotation } from '../api/delivery.ts';
import { keyText, type ObjectKey } from '../api/objects.ts';
import { rolloutAnnotation } from '../api/rollout.ts';
import { type DesiredScope, desiredTopic, nodeTopics } from '../api/topics.ts';
import type { ValidateOptions } from '../api/validate.ts';
import type { Listed } from '../config/desiredIndex.ts';
import { toYaml } from '../config/yaml.ts';
import { loadOptions } from '../options.ts';
import { harmless } from '../world/terminal.ts';
import { agentSetting, type WhereOptions } from './client.ts';
import { defaultConfigFile, readConfigFile } from './configFile.ts';
import { audienceOf, contentText, nextGeneration, scopeText } from './desiredPlan.ts';
import { checkSize, DesiredTopics, isTombstone, type RetainedObject, type Sign } from './desiredTopics.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import { type FileToWrite, holderOf, manifestName, readFolder, writeFiles } from './localFolder.ts';
import { type Manifest, readManifests } from './manifests.ts';
import { annotationsOf, withAnnotations } from './rawObjects.ts';
import type { RemoteBroker } from './remoteBroker.ts';

export interface ApplyOptions extends WhereOptions {
  readonly filename: readonly string[];
}

export interface FilesWorld {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: () => Promise<Uint8Array>;
}

/** Where `apply`, `delete` and `diff` of a fleet act. */
export interface ScopeOptions {
  readonly node?: string;
  readonly group?: string;
  readonly all?: true;
}

export interface PublishOptions {
  /** `--generation`. */
  readonly generation?: number;
  /** `--audience`: whom a signed object is for; else the topic's own. */
  readonly audience?: string;
  /** Of a private key; undefined: nothing is signed. */
  readonly sign?: Sign;
  /** Published unseen, and no index kept. */
  readonly noIndex?: true;
  /** The wave by wave that objects are taken in. */
  readonly rollout?: string;
}

/** The one that is named; undefined: none, this machine's folder is meant. */
export function scopeOf({ node, group, all }: ScopeOptions): DesiredScope | undefined {
  const named = [node !== undefined && { node }, group !== undefined && { group }, all === true && ('all' as const)].filter(
    (s) => s !== false,
  );
  if (named.length > 1) throw new CommandError(exitCodes.usage, '--node, --group and --all: only one of them');
  return named[0];
}

/** What objects of any node may be: only the node knows what it allows. */
export const anyNode: ValidateOptions = { allowedUnsafeSysctls: ['*'] };

/** What this machine allows. */
export async function thisNode(o: WhereOptions): Promise<ValidateOptions> {
  const read = await readConfigFile(o.config ?? defaultConfigFile);
  const { config } = read.ok && read.file !== undefined ? loadOptions({ flags: {}, env: {}, file: read.file }) : {};
  return config === undefined ? {} : { allowedUnsafeSysctls: config.allowedUnsafeSysctls, deviceClasses: Object.keys(config.devices) };
}

const shortName = ({ kind, name }: ObjectKey): string => `${kind.toLowerCase()}/${name}`;

/** Into the manifest folder. Nothing is written when something is wrong with one of them. */
export async function applyLocal(o: ApplyOptions, world: FilesWorld, print: Printer): Promise<number> {
  const dir = resolve(await agentSetting('staticPodPath', o, world.env));
  const manifests = await readManifests(o.filename, { stdin: world.stdin, node: await thisNode(o) }, print);
  const files = await readFolder(dir);
  const written: FileToWrite[] = [];
  const said: string[] = [];
  for (const manifest of manifests) {
    const { key } = manifest;
    const name = manifestName(key);
    const holder = holderOf(files, key);
    if (holder !== undefined && (holder.file.name !== name || !holder.alone)) {
      const itself = dirname(resolve(manifest.file)) === dir ? ', which the agent reads already' : ': change it there, or delete it first';
      throw new CommandError(exitCodes.failed, `${shortName(key)} stands in ${join(dir, holder.file.name)}${itself}`);
    }
    const file = { name, ...(await contentOf(manifest)), secret: key.kind === 'Secret' };
    const before = holder?.file.bytes;
    const unchanged = before !== undefined && Buffer.compare(before, file.bytes) === 0;
    if (!unchanged || file.signature !== undefined) written.push(file);
    said.push(`${harmless(shortName(key))} ${unchanged ? 'unchanged' : before === undefined ? 'created' : 'configured'}\n`);
  }
  if (written.length > 0) await writeFiles(dir, written);
  print.out(said.join(''));
  return exitCodes.done;
}

/** Its own text where the file holds nothing else, comments and all, and the signature that lies beside it. */
async function contentOf({ whole, raw, file, envelope }: Manifest): Promise<Pick<FileToWrite, 'bytes' | 'signature'>> {
  if (whole === undefined) return { bytes: Buffer.from(toYaml(raw)) };
  if (envelope !== undefined) return { bytes: whole, signature: envelope };
  const beside = file === '-' ? undefined : await readFile(`${file}.sig`).catch(() => undefined); // most have none
  return { bytes: whole, ...(beside !== undefined && { signature: beside }) };
}

/** Onto the topics of a fleet, and into the index of what is meant to be there. */
export async function applyRemote(
  o: Pick<ApplyOptions, 'filename'> & PublishOptions,
  scope: DesiredScope,
  { remote, stdin }: { readonly remote: RemoteBroker; readonly stdin: FilesWorld['stdin'] },
  print: Printer,
): Promise<number> {
  const manifests = await readManifests(o.filename, { stdin, node: anyNode }, print);
  await publish(manifests, o, scope, remote, print);
  return exitCodes.done;
}

/** Publishes what is another than before, then the index. */
export async function publish(
  manifests: readonly Manifest[],
  o: PublishOptions,
  scope: DesiredScope,
  remote: RemoteBroker,
  print: Printer,
): Promise<void> {
  if (scope !== 'all' && 'node' in scope) await noteUnknown(scope.node, remote, print);
  const topics = o.noIndex === true ? undefined : await DesiredTopics.open(remote, scope);
  const state = await topics?.read(manifests.map((m) => m.key));
  const plans = manifests.map((manifest) => {
    const before = state?.objects.get(keyText(manifest.key));
    const listed = state?.index?.entries.find((e) => keyText(e.key) === keyText(manifest.key));
    const first = o.sign !== undefined || o.rollout !== undefined ? (topics?.nextGeneration() ?? 1) : undefined;
    return { manifest, before, listed, ...planned(manifest, before, o, { scope, first, remembered: listed?.generation }) };
  });
  for (const { manifest, payload } of plans) checkSize(manifest.key, payload);
  for (const { manifest, payload, act } of plans) {
    if (act === 'unchanged') continue;
    if (topics !== undefined) await topics.put(manifest.key, payload);
    else await remote.publish(desiredTopic(remote.prefix, scope, manifest.key), payload, { retain: true });
  }
  const set = plans.map(
    ({ manifest, payload, generation }): Listed => ({
      key: manifest.key,
      sha256: payloadHash(payload),
      ...(generation !== undefined && { generation }),
    }),
  );
  const news = set.filter((entry, i) => JSON.stringify(entry) !== JSON.stringify(plans[i]?.listed));
  if (topics !== undefined && news.length > 0) {
    await topics.changeIndex({ set: news, remove: [] }, o.sign === undefined ? {} : { sign: o.sign, audience: audienceOf(scope) });
  }
  for (const { manifest, act } of plans) print.out(`${harmless(shortName(manifest.key))} ${act} (${scopeText(scope)})\n`);
}

interface Planned {
  readonly act: 'created' | 'configured' | 'unchanged';
  readonly payload: string | Uint8Array;
  readonly generation: number | undefined;
}

/** The payload of one object, beside what is retained of it. */
function planned(
  { raw, envelope }: Manifest,
  before: RetainedObject | undefined,
  o: PublishOptions,
  at: { readonly scope: DesiredScope; readonly first: number | undefined; readonly remembered: number | undefined },
): Planned {
  const fresh = before === undefined || isTombstone(before);
  const own = annotationsOf(raw);
  const there = annotationsOf(before?.raw);
  const written = generationOf(own[generationAnnotation]);
  // what somebody signed is published as it is: any change would undo the signature
  if (envelope !== undefined) {
    const same = before !== undefined && Buffer.compare(before.bytes, envelope) === 0;
    return { act: same ? 'unchanged' : fresh ? 'created' : 'configured', payload: envelope, generation: written };
  }
  const audience = o.audience ?? own[audienceAnnotation] ?? (o.sign === undefined ? undefined : audienceOf(at.scope));
  const rollout = o.rollout ?? own[rolloutAnnotation];
  const stays =
    !fresh &&
    o.generation === undefined &&
    before.raw !== undefined &&
    before.signed === (o.sign !== undefined) &&
    (written === undefined || written === before.generation) &&
    there[audienceAnnotation] === audience &&
    there[rolloutAnnotation] === rollout &&
    contentText(before.raw) === contentText(raw);
  if (stays) return { act: 'unchanged', payload: before.bytes, generation: before.generation };
  const known = before?.generation ?? at.remembered;
  const generation = nextGeneration({ asked: o.generation, written, before: known, first: at.first });
  const text = JSON.stringify(
    withAnnotations(raw, {
      [generationAnnotation]: generation === undefined ? undefined : String(generation),
      [audienceAnnotation]: audience,
      [rolloutAnnotation]: rollout,
      [stateAnnotation]: undefined,
    }),
  );
  return { act: fresh ? 'created' : 'configured', payload: o.sign?.(text, 'manifest') ?? text, generation };
}

/** One may well publish for a node that is not there yet; more often it is a slip of the pen. */
async function noteUnknown(node: string, remote: RemoteBroker, print: Printer): Promise<void> {
  const { online, info } = nodeTopics(remote.prefix, node);
  const found = await remote.retained([online, info], (known) => known.size > 0);
  if (found.size === 0) print.err(`no node ${JSON.stringify(node)} is known on this broker yet\n`);
}
