// pure
/**
 * What a signature is good for. A good signature (`dsse.ts`) says who wrote something; this says whether that key may, and whether it was
 * written for here: the audience, the generation, and the scope of the key. There are no dates in it, since a Pi may have no clock: a
 * generation that must not fall (config/), and the session of a command (remote/) keep old words from coming back.
 *
 * What came signed over MQTT must name as audience the very topic it came by: the node's name on the node's topic, `group:<g>` on the
 * group's, `*` on that of all. Else a broker could lay an old object of `all` onto a node's topic, where no generation of it is known and
 * where it wins. A file may name any audience that this node belongs to.
 */
import { audienceAnnotation, generationAnnotation, generationOf, topicAudience } from '../api/delivery.ts';
import { entryPath } from '../api/fieldPath.ts';
import type { Command } from '../api/messages.ts';
import { wrongLabel } from '../api/names.ts';
import type { Problem, Source } from '../api/objects.ts';
import { isPlain, type Plain } from '../api/plain.ts';
import { shown } from '../api/scalars.ts';
import type { Verb } from '../api/verbs.ts';
import type { EnvelopeReason, TrustedKey } from './dsse.ts';

export type TrustReason = EnvelopeReason | 'WrongAudience' | 'GenerationMissing' | 'KeyNotAllowed';

/** Why something is not taken: a reason of reasons.ts, and what is wrong where. */
export interface Distrust {
  readonly reason: TrustReason;
  readonly problem: Problem;
}

/** Who listens. */
export interface Receiver {
  readonly node: string;
  readonly groups: readonly string[];
}

/** How something came. */
export interface Arrival {
  readonly source: Source;
  /** The trusted keys that signed it; none: it came unsigned. */
  readonly signers: readonly TrustedKey[];
  /** `requireSignature` of its source kind. */
  readonly required: boolean;
  readonly receiver: Receiver;
}

const distrust = (reason: TrustReason, path: string, expected: string, got: unknown): Distrust => ({
  reason,
  problem: { path, expected, got: shown(got) },
});

const unsigned: Distrust = {
  reason: 'Unsigned',
  problem: { path: '', expected: 'a signed envelope (requireSignature)', got: 'nothing signed' },
};

/** What something from a source says of itself. */
export interface Words {
  readonly of: 'manifest' | 'index' | 'config';
  /** Of an object; absent: it is no object, or in `default`. */
  readonly namespace?: string;
  readonly audience?: string;
  readonly generation?: number;
}

/** What a plain value says of itself: an object by its annotations, an index or a `_config` by its fields. What is of a wrong type is left out. */
export function wordsOf(value: Plain, of: Words['of']): Words {
  const metadata = mappingOf(value.metadata);
  const annotations = mappingOf(metadata.annotations);
  const counted = annotations[generationAnnotation];
  const audience = of === 'manifest' ? annotations[audienceAnnotation] : value.audience;
  const generation = of === 'manifest' ? generationOf(typeof counted === 'string' ? counted : undefined) : value.generation;
  return {
    of,
    ...(typeof metadata.namespace === 'string' && { namespace: metadata.namespace }),
    ...(typeof audience === 'string' && { audience }),
    ...(typeof generation === 'number' && { generation }),
  };
}

const mappingOf = (value: unknown): Plain => (isPlain(value) ? value : {});

/**
 * Judges an object, a tombstone, an index or a `_config` when it comes. undefined: nothing is wrong. What is unsigned is taken where no
 * signature is required, and must be for this node when it says for whom it is. Who judges again what was accepted long ago, and has kept no
 * audience, gives `topicAudience`.
 */
export function judgeSigned(words: Words, arrival: Arrival): Distrust | undefined {
  const { signers, required } = arrival;
  if (required && signers.length === 0) return unsigned;
  const at = (name: string): string => (words.of === 'manifest' ? entryPath('metadata.annotations', `podsched.dev/${name}`) : name);
  const wrong = judgeAudience(words.audience, at('audience'), arrival);
  if (wrong !== undefined || signers.length === 0) return wrong;
  const { generation } = words;
  if (generation === undefined || !Number.isSafeInteger(generation) || generation < 0)
    return distrust('GenerationMissing', at('generation'), 'a whole number, since it is signed', generation);
  return judgeScope(words, arrival);
}

/**
 * Whether any of the keys that signed it may sign such a thing. Who may sign only for some namespaces may not say what an index leaves out,
 * nor configure a node.
 */
export function judgeScope(
  { of, namespace = 'default' }: Words,
  { signers, source }: Pick<Arrival, 'signers' | 'source'>,
): Distrust | undefined {
  const may = (key: TrustedKey): boolean => (of === 'manifest' ? allows(key.namespaces, namespace) : key.namespaces === undefined);
  if (signers.length === 0 || signers.some((key) => may(key) && allowsSource(key, source))) return undefined;
  const what = of === 'manifest' ? `objects of the namespace ${namespace}` : of === 'index' ? 'an index' : 'the configuration of a node';
  return notAllowed(signers, `${what} from ${source.startsWith('file:') ? 'files' : source}`);
}

/** Verbs that are taken only signed where signatures are required: what runs in a container, and what ends everything. */
const needsSignature = (verb: Verb): boolean => verb === 'exec' || verb === 'decommission';

export interface CommandArrival {
  readonly verb: Verb;
  readonly signers: readonly TrustedKey[];
  /** `requireSignature` of policy.mqtt. */
  readonly required: boolean;
  readonly node: string;
}

/**
 * Judges a command. A signed one says for which node, boot and session it is, which verb, and has an id; whether boot and session are the
 * current ones is for who runs it to say (`expired`), and so is that an id counts once for as long as the session lasts.
 */
export function judgeSignedCommand(command: Command, { verb, signers, required, node }: CommandArrival): Distrust | undefined {
  if (signers.length === 0) return required && needsSignature(verb) ? unsigned : undefined;
  if (command.node !== node) return distrust('WrongAudience', 'node', `${node}, since it is signed`, command.node);
  if (command.verb !== verb) return distrust('WrongAudience', 'verb', `${verb}, since it is signed`, command.verb);
  for (const field of ['bootID', 'session', 'id'] as const)
    if (command[field] === undefined || command[field] === '')
      return distrust('WrongAudience', field, 'that of the node’s online, since it is signed', command[field]);
  const { namespace = 'default', pod } = command.target ?? {};
  // a pod that is named beside a verb about the node is no bound of it
  const within = aboutPod.has(verb) && pod !== undefined;
  const may = ({ verbs, namespaces, sources }: TrustedKey): boolean =>
    allows(verbs, verb) &&
    (within ? allows(namespaces, namespace) : namespaces === undefined) &&
    (sources === undefined || sources.some((s) => s === 'mqtt' || s === 'mqtt:node'));
  return signers.some(may) ? undefined : notAllowed(signers, `the command ${verb}${within ? ` in ${namespace}` : ''}`);
}

/** Verbs that reach no further than the pod they name. Those that only look take other namespaces by their arguments. */
const aboutPod: ReadonlySet<Verb> = new Set<Verb>(['logs', 'why', 'exec', 'restart', 'stop', 'start', 'hold', 'release', 'rollback']);

const allows = (scope: readonly string[] | undefined, value: string): boolean => scope === undefined || scope.includes(value);

/** Whether a key's `sources` name a source: itself, or its kind. */
export function allowsSource({ sources }: Pick<TrustedKey, 'sources'>, source: Source): boolean {
  if (sources === undefined) return true;
  if (source.startsWith('file:')) return sources.includes('file');
  return sources.some((s) => s === source || s === 'mqtt' || (s === 'mqtt:group' && source.startsWith('mqtt:group/')));
}

const notAllowed = (signers: readonly TrustedKey[], what: string): Distrust => ({
  reason: 'KeyNotAllowed',
  problem: { path: '', expected: `a key that may sign ${what}`, got: signers.map((k) => `${k.keyid} (${k.file})`).join(', ') },
});

/** A node, `group:<g>` or `*`. */
export const isAudience = (text: string): boolean => text === '*' || wrongLabel(text.replace(/^group:/, '')) === undefined;

function judgeAudience(audience: string | undefined, path: string, { source, signers, receiver }: Arrival): Distrust | undefined {
  const { node, groups } = receiver;
  const own = topicAudience(source, node);
  if (audience === undefined) {
    if (signers.length === 0) return undefined;
    return distrust('WrongAudience', path, `${own ?? `${node}, group:<group> or *`}, since it is signed`, undefined);
  }
  if (!isAudience(audience)) return distrust('WrongAudience', path, 'a node, group:<group> or *', audience);
  if (signers.length > 0 && own !== undefined)
    return audience === own ? undefined : distrust('WrongAudience', path, `${own}, by whose topic it came, since it is signed`, audience);
  const mine = ['*', node, ...groups.map((group) => `group:${group}`)];
  return mine.includes(audience) ? undefined : distrust('WrongAudience', path, `one of ${mine.join(', ')}`, audience);
}
