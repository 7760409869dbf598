// pure
/**
 * A command out of bytes that anybody may have sent: bounded in size and depth before it is parsed, each known field of its type, everything
 * else left out. What is refused still gives its id and reply topic where those can be read, so that the refusal reaches who asked.
 */
import { isDeeper } from '../api/jsonDepth.ts';
import type { Command } from '../api/messages.ts';
import { wrongLabel, wrongSubdomain } from '../api/names.ts';
import type { Problem } from '../api/objects.ts';
import { isPlain, type Plain } from '../api/plain.ts';
import { shown } from '../api/scalars.ts';
import { isVerb, type Verb } from '../api/verbs.ts';
import { isEnvelope } from '../policy/dsse.ts';

export const maxCommandBytes = 64 * 1024;
const maxDepth = 16;
const maxTopicLength = 1024;
/** Printable, without blanks: it stands in logs and is compared letter by letter. */
const idForm = /^[\x21-\x7e]{1,128}$/;

/** A command with its arguments as they came; they are judged by the verb. */
export type DecodedCommand = Command & { readonly args: Readonly<Record<string, unknown>> };

export type Decoded =
  | { readonly as: 'command'; readonly command: DecodedCommand }
  /** Signed: to be opened first. */
  | { readonly as: 'envelope' }
  | { readonly as: 'tooLarge' }
  | { readonly as: 'refused'; readonly problem: Problem; readonly id?: string; readonly replyTo?: string };

const head = { apiVersion: 'podsched.dev/v1', kind: 'Command' } as const;

/** Own fields only: nothing is read from a prototype. null is as absent, as in Kubernetes. */
const own = (o: Plain, name: string): unknown => (Object.hasOwn(o, name) ? (o[name] ?? undefined) : undefined);

const refuse = (path: string, expected: string, got: unknown, more: { id?: string; replyTo?: string } = {}): Decoded => ({
  as: 'refused',
  problem: { path, expected, got: typeof got === 'string' && path === '' ? got : shown(got) },
  ...more,
});

/** No payload at all is a command that says nothing more than its topic. */
export function decodeCommand(payload: Uint8Array): Decoded {
  if (payload.length > maxCommandBytes) return { as: 'tooLarge' };
  if (payload.length === 0) return { as: 'command', command: { ...head, args: {} } };
  const text = utf8(payload);
  if (text === undefined) return refuse('', 'a Command in JSON', 'bytes that are no UTF-8');
  if (isDeeper(payload, maxDepth)) return refuse('', `at most ${maxDepth} levels`, 'more');
  const value = json(text);
  if (value === undefined) return refuse('', 'a Command in JSON', 'no JSON');
  if (!isPlain(value.is)) return refuse('', 'a Command in JSON', shown(value.is));
  return isEnvelope(value.is) ? { as: 'envelope' } : readFields(value.is);
}

function readFields(o: Plain): Decoded {
  const given = own(o, 'id');
  const id = typeof given === 'string' && idForm.test(given) ? given : undefined;
  const topic = own(o, 'replyTo');
  const replyTo = typeof topic === 'string' && topic.length <= maxTopicLength ? topic : undefined;
  const known = { ...(id !== undefined && { id }), ...(replyTo !== undefined && { replyTo }) };
  const wrong = (path: string, expected: string): Decoded => refuse(path, expected, own(o, path), known);

  const apiVersion = own(o, 'apiVersion');
  if (apiVersion !== undefined && apiVersion !== 'podsched.dev/v1') return wrong('apiVersion', 'podsched.dev/v1');
  const kind = own(o, 'kind');
  if (kind !== undefined && kind !== 'Command') return wrong('kind', 'Command');
  if (given !== undefined && id === undefined) return wrong('id', 'text of 1 to 128 printable letters without blanks');
  if (topic !== undefined && replyTo === undefined) return wrong('replyTo', 'a topic');
  const session = own(o, 'session');
  if (session !== undefined && !(typeof session === 'number' && Number.isSafeInteger(session))) return wrong('session', 'a whole number');
  for (const name of ['bootID', 'node'] as const) {
    const text = own(o, name);
    if (text !== undefined && !(typeof text === 'string' && text.length <= 128)) return wrong(name, 'text of at most 128 letters');
  }
  const verb = own(o, 'verb');
  if (verb !== undefined && !(typeof verb === 'string' && isVerb(verb))) return wrong('verb', 'the verb of the topic');
  const args = own(o, 'args') ?? {};
  if (!isPlain(args)) return wrong('args', 'a mapping');
  const target = readTarget(own(o, 'target'));
  if ('problem' in target) return { as: 'refused', problem: target.problem, ...known };
  return {
    as: 'command',
    command: {
      ...head,
      ...known,
      ...(target.is !== undefined && { target: target.is }),
      args,
      ...(typeof session === 'number' && { session }),
      ...textOf(o, 'bootID'),
      ...textOf(o, 'node'),
      ...(verb !== undefined && { verb: verb as Verb }),
    },
  };
}

const textOf = <N extends string>(o: Plain, name: N): { readonly [K in N]?: string } => {
  const text = own(o, name);
  return (typeof text === 'string' ? { [name]: text } : {}) as { readonly [K in N]?: string };
};

const nameForms = { namespace: wrongLabel, pod: wrongSubdomain, container: wrongLabel } as const;

function readTarget(value: unknown): { readonly is: Command['target'] } | { readonly problem: Problem } {
  if (value === undefined) return { is: undefined };
  if (!isPlain(value)) return { problem: { path: 'target', expected: 'a mapping', got: shown(value) } };
  const target: { namespace?: string; pod?: string; container?: string } = {};
  for (const name of ['namespace', 'pod', 'container'] as const) {
    const given = own(value, name);
    if (given === undefined) continue;
    const expected = typeof given === 'string' ? nameForms[name](given) : 'text';
    if (expected !== undefined || typeof given !== 'string')
      return { problem: { path: `target.${name}`, expected: expected ?? 'text', got: shown(given) } };
    target[name] = given;
  }
  return { is: target };
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined; // the answer says so
  }
}

function json(text: string): { readonly is: unknown } | undefined {
  try {
    return { is: JSON.parse(text) };
  } catch {
    return undefined; // the answer says so
  }
}
