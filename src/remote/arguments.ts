// pure
/**
 * What each verb takes: the table that commands are judged by and documentation is made of. An argument that is not known is refused, since an
 * older node that left out a `dryRun` would do more than was asked.
 */
import { wrongLabel, wrongSubdomain } from '../api/names.ts';
import { nearest } from '../api/nearest.ts';
import type { Problem } from '../api/objects.ts';
import { shown } from '../api/scalars.ts';
import type { Verb } from '../api/verbs.ts';
import { harmless } from '../world/terminal.ts';
import type { Args } from './words.ts';

export type ArgShape =
  | { readonly kind: 'text'; readonly form?: 'namespace' | 'name' }
  | { readonly kind: 'word'; readonly oneOf: readonly string[] }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number }
  | { readonly kind: 'flag' }
  /** A program and what it is given; never shown, it may hold a secret. */
  | { readonly kind: 'vector'; readonly most: number };

export interface ArgSpec {
  readonly shape: ArgShape;
  readonly default?: string | number | boolean;
  readonly required?: true;
  readonly does: string;
}

export interface VerbSpec {
  readonly does: string;
  /** `pod`: without one it is refused. */
  readonly target: 'none' | 'optional' | 'pod';
  readonly args: Readonly<Record<string, ArgSpec>>;
  readonly answer: 'json' | 'text' | 'log' | 'output' | 'message';
  /** Answered `accepted` at once. */
  readonly slow?: true;
}

const flag = (does: string): ArgSpec => ({ shape: { kind: 'flag' }, default: false, does });
const integer = (min: number, max: number, does: string, byDefault?: number): ArgSpec => ({
  shape: { kind: 'integer', min, max },
  ...(byDefault !== undefined && { default: byDefault }),
  does,
});
const word = (oneOf: readonly string[], does: string): ArgSpec => {
  const [first = ''] = oneOf;
  return { shape: { kind: 'word', oneOf }, default: first, does };
};
const namespaceArg: ArgSpec = {
  shape: { kind: 'text', form: 'namespace' },
  does: 'only of this namespace; else target.namespace, else all',
};
const nameArg: ArgSpec = { shape: { kind: 'text', form: 'name' }, does: 'only this one; else target.pod, else all' };

export const mebibyte = 1024 * 1024;
/** The most of one answer that is sent. */
export const replyCapBytes = mebibyte;
export const outputCapBytes = 256 * 1024;
export const longestExecSeconds = 60;

const podAct = (does: string, args: VerbSpec['args'] = {}): VerbSpec => ({
  does,
  target: 'pod',
  args,
  answer: 'message',
  slow: true,
});

export const verbSpecs: Readonly<Record<Verb, VerbSpec>> = {
  get: {
    does: 'lists, in the shape of the local API',
    target: 'optional',
    args: {
      what: word(
        ['pods', 'sync', 'objects', 'files', 'events', 'conditions', 'node', 'images', 'configuration', 'version'],
        'what is listed; pods without environment, commands and volumes',
      ),
      namespace: namespaceArg,
      name: nameArg,
    },
    answer: 'json',
  },
  describe: {
    does: 'a pod or the node in full, with its events, as a text',
    target: 'optional',
    args: { kind: word(['pod', 'node'], 'what is described; a pod needs target.pod') },
    answer: 'text',
  },
  why: {
    does: 'the one reason why it does not run, and what would help',
    target: 'pod',
    args: {
      kind: word(['pod', 'configmap', 'secret'], 'kind of what target.pod names'),
      output: word(['text', 'json'], 'for people or for programs'),
    },
    answer: 'text',
  },
  events: {
    does: 'the last 500 events',
    target: 'optional',
    args: { namespace: namespaceArg, name: nameArg },
    answer: 'json',
  },
  top: {
    does: 'what pods or the node use now',
    target: 'optional',
    args: { what: word(['pods', 'node', 'summary'], 'summary: as the kubelet’s /stats/summary'), namespace: namespaceArg },
    answer: 'json',
  },
  doctor: { does: 'checks the machine', target: 'none', args: {}, answer: 'json', slow: true },
  identify: {
    does: 'blinks the LED of the board',
    target: 'none',
    args: { seconds: integer(1, 300, 'for how long', 10) },
    answer: 'message',
  },
  logs: {
    does: 'a log of a container, or its lines as they come',
    target: 'pod',
    args: {
      tailLines: integer(0, 100_000, 'only so many of the last lines; without this and since…: 1000, when following 10'),
      sinceSeconds: integer(1, 315_360_000, 'only lines of the last so many seconds'),
      sinceTime: { shape: { kind: 'text' }, does: 'only lines from this time on (RFC 3339)' },
      previous: flag('of the instance before this one'),
      timestamps: flag('each line begins with its time'),
      limitBytes: integer(1, replyCapBytes, 'no more than so many bytes', replyCapBytes),
      follow: flag('lines as they come, on nodes/<node>/logs/<namespace>/<pod>, until the lease ends'),
      leaseSeconds: integer(0, 600, 'with follow: for how long; asked for again it is renewed, 0 ends it', 60),
    },
    answer: 'log',
  },
  exec: {
    does: 'runs a program in a container, without a shell and without input',
    target: 'pod',
    args: {
      command: { shape: { kind: 'vector', most: 128 }, required: true, does: 'the program and its arguments' },
      timeoutSeconds: integer(1, longestExecSeconds, 'after that it is ended', 30),
      limitBytes: integer(1, outputCapBytes, 'no more of the output, of both streams together', 64 * 1024),
    },
    answer: 'output',
    slow: true,
  },
  restart: podAct('restarts containers of a pod by their grace, in place; target.container: only that one', {
    new: flag('a new instance of the pod instead'),
  }),
  stop: podAct('ends a pod by its grace and keeps it away, over reboots'),
  start: podAct('lets a stopped pod run again'),
  hold: podAct('edits of the pod wait'),
  release: podAct('edits of the pod are taken again'),
  rollback: podAct('goes back to the last good revision, then holds'),
  resync: {
    does: 'reads the sources again and publishes everything',
    target: 'none',
    args: { forgetLost: flag('ends pods that only a lost checkpoint named; policy must allow stop as well') },
    answer: 'message',
    slow: true,
  },
  images: {
    does: 'the images of the node',
    target: 'none',
    args: {
      do: word(['list', 'pull', 'prune', 'pin', 'unpin'], 'what is done'),
      image: { shape: { kind: 'text' }, does: 'its name; of pull, pin and unpin' },
      dryRun: flag('prune: says only what would go'),
    },
    answer: 'json',
    slow: true,
  },
  bundle: { does: 'a support bundle, without secrets', target: 'none', args: {}, answer: 'json', slow: true },
  decommission: {
    does: 'ends the pods that came by MQTT and clears what the node keeps and tells of it; files stay',
    target: 'none',
    args: { confirm: { shape: { kind: 'text' }, required: true, does: 'the name of the node' } },
    answer: 'message',
    slow: true,
  },
};

/** Whether it changes something: then it is an event, and its id outlives the agent. */
export function changes(verb: Verb, args: Args): boolean {
  switch (verb) {
    case 'get':
    case 'describe':
    case 'why':
    case 'events':
    case 'top':
    case 'doctor':
    case 'identify':
    case 'logs':
    case 'bundle':
      return false;
    case 'resync':
      return args.forgetLost === true;
    case 'images':
      return args.do !== 'list' && args.dryRun !== true;
    case 'exec':
    case 'restart':
    case 'stop':
    case 'start':
    case 'hold':
    case 'release':
    case 'rollback':
    case 'decommission':
      return true;
  }
}

/** Whether it has an effect beside its answer: then it is run where nobody can be answered, too. */
export const acts = (verb: Verb, args: Args): boolean =>
  verb === 'identify' || verb === 'resync' || (verb === 'logs' && args.follow === true) || changes(verb, args);

export type CheckedArgs = { readonly ok: true; readonly args: Args } | { readonly ok: false; readonly problem: Problem };

const longestText = 1024;
const longestVectorBytes = 32 * 1024;

/** The arguments by their table, or the first mistake. */
export function checkArgs(verb: Verb, given: Readonly<Record<string, unknown>>): CheckedArgs {
  const specs = verbSpecs[verb].args;
  const args: Record<string, Args[string]> = {};
  const wrong = (name: string, expected: string, got: string, close?: string): CheckedArgs => ({
    ok: false,
    problem: { path: `args.${name.slice(0, 60)}`, expected, got, ...(close !== undefined && { nearest: close }) },
  });
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(specs, name)) continue;
    const names = Object.keys(specs);
    return wrong(name, names.length === 0 ? 'no arguments' : `one of ${names.join(', ')}`, shown(name), nearest(name, names));
  }
  for (const [name, spec] of Object.entries(specs)) {
    const value = Object.hasOwn(given, name) ? (given[name] ?? undefined) : undefined;
    if (value === undefined) {
      if (spec.required) return wrong(name, expectedOf(spec.shape), 'nothing');
      if (spec.default !== undefined) args[name] = spec.default;
      continue;
    }
    const expected = wrongValue(spec.shape, value);
    if (expected !== undefined) return wrong(name, expected, spec.shape.kind === 'vector' ? 'a value that is not shown' : shown(value));
    args[name] = value as Args[string];
  }
  const clash = clashOf(verb, args);
  return clash === undefined ? { ok: true, args } : wrong(clash.name, clash.expected, clash.got);
}

function expectedOf(shape: ArgShape): string {
  switch (shape.kind) {
    case 'text':
      return `text of at most ${longestText} letters`;
    case 'word':
      return `one of ${shape.oneOf.join(', ')}`;
    case 'integer':
      return `a whole number from ${shape.min} to ${shape.max}`;
    case 'flag':
      return 'true or false';
    case 'vector':
      return `a list of 1 to ${shape.most} texts, the name of a program first, without NUL`;
  }
}

/** What was expected; undefined when the value is right. */
function wrongValue(shape: ArgShape, value: unknown): string | undefined {
  const expected = expectedOf(shape);
  switch (shape.kind) {
    case 'text': {
      if (typeof value !== 'string' || value === '' || value.length > longestText || harmless(value) !== value) return expected;
      return shape.form === 'namespace' ? wrongLabel(value) : shape.form === 'name' ? wrongSubdomain(value) : undefined;
    }
    case 'word':
      return typeof value === 'string' && shape.oneOf.includes(value) ? undefined : expected;
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value) && value >= shape.min && value <= shape.max ? undefined : expected;
    case 'flag':
      return typeof value === 'boolean' ? undefined : expected;
    case 'vector': {
      if (!Array.isArray(value) || value.length === 0 || value.length > shape.most || value[0] === '') return expected;
      let bytes = 0;
      for (const item of value as readonly unknown[]) {
        // an argument of a program ends with a NUL: there is none inside
        if (typeof item !== 'string' || item.includes('\0')) return expected;
        bytes += item.length;
      }
      return bytes > longestVectorBytes ? `${expected}, of at most ${longestVectorBytes} letters` : undefined;
    }
  }
}

/** What does not go together. */
function clashOf(verb: Verb, args: Args): { readonly name: string; readonly expected: string; readonly got: string } | undefined {
  if (verb === 'logs') {
    if (args.sinceSeconds !== undefined && args.sinceTime !== undefined)
      return { name: 'sinceTime', expected: 'at most one of sinceTime and sinceSeconds', got: 'both' };
    if (args.follow === true && args.previous === true)
      return { name: 'previous', expected: 'false with follow, since it writes no more', got: 'true' };
  }
  if (verb === 'images') {
    const named = args.do === 'pull' || args.do === 'pin' || args.do === 'unpin';
    if (named && args.image === undefined) return { name: 'image', expected: 'the name of an image', got: 'nothing' };
    if (!named && args.image !== undefined)
      return { name: 'image', expected: `nothing with do: ${String(args.do)}`, got: shown(args.image) };
    if (args.dryRun === true && args.do !== 'prune') return { name: 'dryRun', expected: 'false but with do: prune', got: 'true' };
  }
  return undefined;
}
