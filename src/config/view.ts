// pure
/** What config/ knows of every object and file, in the words that status/ and operations/ tell. Secrets' contents are not in it. */
import { type KeyText, type Kind, keyText, type PodUid, type Problem, type Source } from '../api/objects.ts';
import { podImages } from '../api/podImages.ts';
import { podReferences } from '../api/references.ts';
import type { DecodedFile } from './decode.ts';
import { type Entry, fileOf, fileSource, type Rank, visibleTo, winnerOf } from './merge.ts';
import type { RemoteNotes } from './remoteNotes.ts';
import type { RemoteNote } from './remoteObjects.ts';

/** What a shadowed file was expected to hold: its problem by which it is told apart from a mistake. */
export const shadowedExpectation = 'an object that no other file has';

export interface Told {
  readonly reason: string;
  readonly message: string;
}

export interface SourceView extends Told {
  readonly source: Source;
  /** Of a topic: the counter of what it says now. */
  readonly generation?: number;
  /** What is accepted of this source: of a refused one the last good, if there is one. */
  readonly revision?: string;
  readonly phase: 'Accepted' | 'Shadowed' | 'Refused' | 'Waiting';
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

export interface ObjectView {
  readonly key: KeyText;
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  readonly winner?: { readonly source: Source; readonly revision: string; readonly generation?: number };
  readonly uid?: PodUid;
  /** When it (a pod: this instance) was first accepted, RFC 3339. */
  readonly since?: string;
  /** Wanted, and held back. */
  readonly pending?: Told;
  /** Accepted, and something else runs: there is no room for it, its images are not here, it was given up, somebody holds the pod. */
  readonly blockedEdit?: Told;
  /** Who holds the pod at what runs of it, in words. */
  readonly heldBy?: string;
  /** A sealed Secret that cannot be opened: this one, or one that the pod uses. */
  readonly unopened?: Told;
  readonly sources: readonly SourceView[];
}

export interface FileView {
  readonly file: string;
  /** Why something of it is refused, where it is more than a mistake in it. */
  readonly reason?: string;
  readonly objects: readonly KeyText[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

export interface FolderView {
  /** The folder was read at least once since start. */
  readonly read: boolean;
  /** Why it cannot be read now. */
  readonly fault?: string;
  readonly insecure?: string;
  /** Why only polling is left. */
  readonly degraded?: string;
}

export interface ConfigView {
  readonly objects: readonly ObjectView[];
  readonly files: readonly FileView[];
  readonly folder: FolderView;
}

export interface ViewInput {
  readonly entries: ReadonlyMap<KeyText, Entry>;
  readonly files: readonly DecodedFile[];
  /** Candidates that are not accepted yet, and why. */
  readonly pending: ReadonlyMap<KeyText, Told & { readonly sources: readonly { readonly source: Source; readonly revision: string }[] }>;
  /** Why what is accepted is not what runs. */
  readonly blocked: ReadonlyMap<KeyText, Told>;
  /** Who holds it, in words; left out: nobody. */
  heldBy?(entry: Entry): string | undefined;
  /** Which of several candidates of one kind of source counts. Left out: by the kind alone. */
  readonly rank?: Rank;
  /** What is told in place of a Secret's revision: a plain hash over a short password is the password. */
  hiddenRevision(revision: string): string;
  /** What else is told of sources, by object. Left out: nothing. */
  readonly notes?: readonly RemoteNotes[];
  /** Topics of desired state that hold nothing that could be told at an object, and what is wrong there. */
  readonly wrongTopics?: readonly (readonly [topic: string, problems: readonly Problem[]])[];
  /** Why a sealed Secret cannot be opened for pods of a source. */
  unopened?(key: KeyText, source: Source): Told | undefined;
  readonly folder: FolderView;
}

export function splitKey(key: KeyText): { readonly kind: Kind; readonly namespace: string; readonly name: string } {
  const [kind = 'Pod', namespace = '', ...name] = key.split('/');
  return { kind: kind as Kind, namespace, name: name.join('/') };
}

/** Views of objects of which there is nothing to tell but that they were accepted, and what they were made of: the same again is not made anew. */
export type KnownViews = Map<KeyText, { readonly entry: Entry; readonly heldBy: string | undefined; readonly view: ObjectView }>;

/** All of it, objects by key and files by name. What of `known` is as it was is taken from there; it is brought up to date. */
export function computeView(input: ViewInput, known: KnownViews = new Map()): ConfigView {
  const refused = refusals(input);
  const warnings = new Map<KeyText, Map<Source, readonly Problem[]>>();
  for (const file of input.files) {
    for (const o of file.objects) {
      if (o.warnings.length === 0) continue;
      const of = warnings.get(o.key) ?? new Map<Source, readonly Problem[]>();
      warnings.set(o.key, of.set(fileSource(file.name), o.warnings));
    }
  }
  const notes = input.notes ?? [];
  const special = [input.pending, input.blocked, refused, warnings, ...notes];
  const keys = [...new Set([input.entries, input.pending, refused, ...notes].flatMap((of) => [...of.keys()]))].sort();
  const wrong = (input.wrongTopics ?? []).map(([file, problems]) => ({ file, objects: [], problems, warnings: [] }));
  const unopened = unopenedOf(input);
  const objects = keys.map((key) => {
    const entry = input.entries.get(key);
    const heldBy = entry && input.heldBy?.(entry);
    const closed = unopened(key);
    const plain = entry !== undefined && closed === undefined && !special.some((of) => of.has(key));
    const before = plain ? known.get(key) : undefined;
    if (before !== undefined && before.entry === entry && before.heldBy === heldBy) return before.view;
    const noted = new Map(notes.flatMap((of) => [...(of.get(key) ?? [])]));
    const said = { refused: refused.get(key) ?? none, noted, warnings: (source: Source) => warnings.get(key)?.get(source) ?? [] };
    const view = objectView(key, input, said, { heldBy, unopened: closed });
    if (plain) known.set(key, { entry, heldBy, view });
    else known.delete(key);
    return view;
  });
  if (known.size > objects.length) for (const key of known.keys()) if (!input.entries.has(key)) known.delete(key);
  return {
    objects,
    files: [...[...input.files].sort((a, b) => (a.name < b.name ? -1 : 1)).map((file) => fileView(file, input)), ...wrong],
    folder: input.folder,
  };
}

/** Places of an object's manifest that have no effect; undefined before the manifests were read. */
export function ignoredPaths({ objects, folder }: ConfigView, key: KeyText, source: Source): readonly string[] | undefined {
  if (!folder.read) return undefined;
  const said = objects.find((o) => o.key === key)?.sources.find((s) => s.source === source);
  return (said?.warnings ?? []).flatMap((w) => (w.path === '' ? [] : [w.path]));
}

/** Images that a known pod may need, as written: of what is wanted, of what runs, and of what a rollback would go back to. */
export function knownImages(entries: Iterable<Entry>): ReadonlySet<string> {
  const images = new Set<string>();
  for (const entry of entries) {
    for (const candidate of [winnerOf(entry), entry.running, entry.good]) {
      if (candidate?.object.kind === 'Pod') for (const image of podImages(candidate.object)) images.add(image);
    }
  }
  return images;
}

const none: Refusals = new Map();

/** What is said of the sources of one object, beside what is accepted. */
interface Said {
  readonly refused: Refusals;
  readonly noted: ReadonlyMap<Source, RemoteNote>;
  warnings(source: Source): readonly Problem[];
}

type Refusals = ReadonlyMap<Source, { readonly reason: string; readonly problems: readonly Problem[] }>;

/** By object: the sources that say something about it that is refused, or that may have said something. */
function refusals(input: ViewInput): ReadonlyMap<KeyText, Refusals> {
  const out = new Map<KeyText, Map<Source, { reason: string; problems: readonly Problem[] }>>();
  const add = (key: KeyText, file: DecodedFile, problems: readonly Problem[], reason = file.reason): void => {
    const of = out.get(key) ?? new Map();
    of.set(fileSource(file.name), { reason, problems });
    out.set(key, of);
  };
  for (const file of input.files) for (const { key, problems, reason } of file.refused) add(key, file, problems, reason);
  const broken = new Map(input.files.filter((f) => !f.whole).map((f) => [f.name, f]));
  for (const entry of input.entries.values()) {
    for (const { source } of entry.candidates) {
      const file = broken.get(fileOf(source) ?? '');
      // the file is broken where this object stood: its last good goes on
      if (file === undefined || file.objects.some((o) => o.key === entry.key) || out.get(entry.key)?.has(source)) continue;
      add(entry.key, file, file.problems);
    }
  }
  return out;
}

/** Secrets that cannot be opened, and who uses them. */
function unopenedOf(input: ViewInput): (key: KeyText) => Told | undefined {
  const closed = new Map<KeyText, ReadonlyMap<Source, Told>>();
  for (const { key, candidates } of input.entries.values()) {
    if (!key.startsWith('Secret/') || input.unopened === undefined) continue;
    const told = candidates.flatMap(({ source }) => {
      const why = input.unopened?.(key, source);
      return why === undefined ? [] : [[source, why] as const];
    });
    if (told.length > 0) closed.set(key, new Map(told));
  }
  if (closed.size === 0) return () => undefined;
  return (key) => {
    const entry = input.entries.get(key);
    const winner = entry && winnerOf(entry);
    if (winner === undefined) return undefined;
    if (winner.object.kind !== 'Pod') return closed.get(key)?.get(winner.source);
    const { namespace } = splitKey(key);
    for (const { kind, name } of podReferences(winner.object.spec)) {
      const secret = keyText({ kind, namespace, name });
      const why = closed.has(secret) ? input.unopened?.(secret, winner.source) : undefined;
      if (why !== undefined) return { reason: why.reason, message: `Secret ${name}: ${why.message}` };
    }
    return undefined;
  };
}

function objectView(
  key: KeyText,
  input: ViewInput,
  said: Said,
  { heldBy, unopened }: { readonly heldBy: string | undefined; readonly unopened: Told | undefined },
): ObjectView {
  const { refused, noted } = said;
  const entry = input.entries.get(key);
  const pending = input.pending.get(key);
  const blocked = input.blocked.get(key);
  const winner = entry === undefined ? undefined : winnerOf(entry);
  const { kind } = splitKey(key);
  const told = (revision: string): string => (kind === 'Secret' ? input.hiddenRevision(revision) : revision);
  const revisions = new Map<Source, string>(entry?.candidates.map((c) => [c.source, c.revision]));
  for (const { source, revision } of pending?.sources ?? []) revisions.set(source, revision);
  const generations = new Map(entry?.candidates.map((c) => [c.source, c.generation]));
  const sources = [...new Set([...revisions.keys(), ...refused.keys(), ...noted.keys()])].sort().map((source): SourceView => {
    const revision = revisions.get(source);
    const note = noted.get(source);
    const generation = note?.generation ?? generations.get(source);
    const base = {
      source,
      ...(revision === undefined ? {} : { revision: told(revision) }),
      ...(generation === undefined ? {} : { generation }),
      problems: [],
      warnings: note?.warnings ?? said.warnings(source),
    };
    const wrong = refused.get(source) ?? (note?.phase === 'Refused' ? note : undefined);
    if (wrong !== undefined) {
      const goesOn = source === winner?.source ? 'what was accepted of it last goes on' : 'it takes no part';
      return { ...base, phase: 'Refused', reason: wrong.reason, message: goesOn, problems: wrong.problems };
    }
    if (note?.phase === 'Waiting') return { ...base, phase: 'Waiting', reason: note.reason, message: note.message };
    if (pending?.sources.some((s) => s.source === source))
      return { ...base, phase: 'Waiting', reason: pending.reason, message: pending.message };
    // a ConfigMap of a file and one of a topic are two: pods of each kind of source see their own (behaviour 13)
    const counts = kind === 'Pod' || entry === undefined ? winner : (visibleTo(entry, source, input.rank) ?? winner);
    if (counts !== undefined && source !== counts.source) {
      return { ...base, phase: 'Shadowed', reason: 'Shadowed', message: `${counts.source} has the same object and goes on` };
    }
    if (blocked !== undefined) return { ...base, phase: 'Waiting', ...blocked };
    if (note?.reason === 'SourceGone') return { ...base, phase: 'Accepted', reason: note.reason, message: note.message };
    const unheeded = base.warnings.some((w) => w.path !== '');
    return { ...base, phase: 'Accepted', reason: unheeded ? 'FieldsWithoutEffect' : 'Accepted', message: '' };
  });
  return {
    key,
    ...splitKey(key),
    ...(winner === undefined
      ? {}
      : {
          winner: {
            ...{ source: winner.source, revision: told(winner.revision) },
            ...(winner.generation === undefined ? {} : { generation: winner.generation }),
          },
        }),
    ...(entry?.uid === undefined ? {} : { uid: entry.uid }),
    ...(entry === undefined ? {} : { since: entry.since }),
    ...(pending === undefined ? {} : { pending: { reason: pending.reason, message: pending.message } }),
    ...(blocked === undefined ? {} : { blockedEdit: blocked }),
    ...(heldBy === undefined ? {} : { heldBy }),
    ...(unopened === undefined ? {} : { unopened }),
    sources,
  };
}

function fileView(file: DecodedFile, input: ViewInput): FileView {
  const shadowed: Problem[] = [];
  for (const { key } of file.objects) {
    const other = fileOf(input.entries.get(key)?.winner ?? fileSource(file.name));
    if (other === undefined || other === file.name) continue;
    shadowed.push({
      path: 'metadata.name',
      expected: shadowedExpectation,
      got: `${key}, which ${other} has too and which goes on`,
      file: file.name,
    });
  }
  return {
    file: file.name,
    ...(file.reason !== 'Invalid' && { reason: file.reason }),
    objects: [...new Set([...file.objects.map((o) => o.key), ...file.refusedKeys])],
    problems: [...file.problems, ...shadowed],
    warnings: [...file.warnings, ...file.objects.flatMap((o) => o.warnings)],
  };
}
