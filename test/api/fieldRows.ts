/**
 * Every field of Pod, ConfigMap and Secret with what this version does with it: the field table (src/api/fields.ts) walked as decode.ts
 * walks an object, with the support table (src/api/support.ts) beside it. docs/fields.md is printed from these rows, and each is probed.
 */
import { kinds } from '../../src/api/decode.ts';
import { entryPath, fieldPath, itemPath } from '../../src/api/fieldPath.ts';
import { fieldResources, fileFieldPaths, plainFieldPaths } from '../../src/api/fieldRefs.ts';
import { fieldsOf, type Shape } from '../../src/api/fields.ts';
import type { Kind } from '../../src/api/objects.ts';
import { type SupportLevel, type SupportRow, supportOf, supportTable } from '../../src/api/support.ts';
import { safeSysctls } from '../../src/api/sysctls.ts';
import { systemPriorities } from '../../src/api/validate.ts';

export interface Verdict {
  readonly status: 'supported' | 'refused' | 'ignored';
  /** The place whose row says so: the field's own, or that of what it is part of. */
  readonly by: string;
  readonly reason: string;
}

export interface FieldRow {
  readonly kind: Kind;
  /** Without indexes: `spec.containers[].env[].name`, `metadata.labels[podsched.dev/ha]`. */
  readonly place: string;
  /** The struct the field belongs to, and the place of that struct ('' is the object). */
  readonly owner: string;
  readonly ownerPlace: string;
  /** Under its owner: `image`, `limits[cpu]`. */
  readonly name: string;
  readonly shape: Shape;
  readonly required: boolean;
  readonly pointer: boolean;
  readonly verdict: Verdict;
  /** Something under it is refused or ignored. */
  readonly partly: boolean;
  /** Its own row: the values that are taken, and those that say nothing. */
  readonly row: SupportRow;
}

/** A key nobody has a row for. */
export const otherKey = 'example.com/other';

/** What validate.ts knows better than the support table. */
const narrower: ReadonlyMap<string, string> = new Map([
  ['spec.containers[].restartPolicy', 'only init containers may have one'],
  ...['spec.containers[]', 'spec.initContainers[]'].map(
    (place) => [`${place}.readinessProbe.terminationGracePeriodSeconds`, 'a readiness probe ends nothing'] as const,
  ),
]);

const narrowerWords: readonly (readonly [RegExp, readonly string[]])[] = [
  // it takes a user namespace, and hostUsers: false is refused
  [/\.securityContext\.procMount$/, ['Default']],
  [/^spec\.volumes\[\]\..*\.fieldPath$/, fileFieldPaths],
];

/** Texts of which the validator has a list. */
const listed: ReadonlyMap<string, readonly string[]> = new Map([
  ['Pod.kind', ['Pod']],
  ['ConfigMap.kind', ['ConfigMap']],
  ['Secret.kind', ['Secret']],
  ...[...kinds, 'ObjectFieldSelector'].map((owner) => [`${owner}.apiVersion`, ['v1']] as const),
  ['PodSpec.priorityClassName', Object.keys(systemPriorities)],
  ['ObjectFieldSelector.fieldPath', plainFieldPaths],
  ['ResourceFieldSelector.resource', fieldResources],
  ['Sysctl.name', safeSysctls],
]);

/** The words a field takes, where it has a closed set of them. */
export function wordsOf({ owner, name, place, shape, row }: FieldRow): readonly string[] | undefined {
  const { only } = row;
  const narrowed = narrowerWords.find(([places]) => places.test(place))?.[1];
  const texts = only?.map(String) ?? (shape.kind === 'enum' ? undefined : (narrowed ?? listed.get(`${owner}.${name}`)));
  if (texts !== undefined) return texts;
  return shape.kind === 'enum' ? shape.values.filter((v) => v !== '' && (narrowed?.includes(v) ?? true)) : undefined;
}

/** Beyond the list: in words, and a text of that sort. */
export const beyondList: ReadonlyMap<string, { readonly told: string; readonly example: string }> = new Map([
  ['ObjectFieldSelector.fieldPath', { told: "`metadata.labels['KEY']`, `metadata.annotations['KEY']`", example: "metadata.labels['x']" }],
  ['ResourceFieldSelector.resource', { told: '`limits.hugepages-SIZE`, `requests.hugepages-SIZE`', example: 'limits.hugepages-2Mi' }],
  ['Sysctl.name', { told: 'and what `allowedUnsafeSysctls` names', example: 'kernel.shm_rmid_forced' }],
]);

/** The words of a place: `spec`, `containers`, `[]`, `resources`, `limits`, `[cpu]`. */
export const stepsOf = (place: string): string[] => place.match(/\[[^\]]*\]|[^.[\]]+/g) ?? [];

/** The key of a step `[key]`; a row for all keys that begin so is tried with one of them. */
export const keyOf = (step: string): string =>
  step
    .slice(1, -1)
    .replace(/^hugepages-\*$/, 'hugepages-2Mi')
    .replace(/\*$/, 'x');

/** The path in an object whose lists have one entry each. */
export const pathOf = (place: string): string =>
  stepsOf(place).reduce(
    (path, step) => (step === '[]' ? itemPath(path, 0) : step.startsWith('[') ? entryPath(path, keyOf(step)) : fieldPath(path, step)),
    '',
  );

const after = (place: string, of: string): string => (place.startsWith(of) ? place.slice(of.length) : '');

/** All rows, in the order of the field table, each struct where it stands. */
export function fieldRows(): FieldRow[] {
  const rows: Omit<FieldRow, 'partly'>[] = [];
  type Member = Pick<FieldRow, 'name' | 'shape' | 'required' | 'pointer' | 'owner' | 'ownerPlace'>;

  const member = (kind: Kind, place: string, of: Member, parent: SupportLevel, inherited: Verdict | undefined): void => {
    const row = supportOf(place, parent);
    const refusal = row.level === 'refused' ? (row.reason ?? '') : narrower.get(place);
    const verdict: Verdict | undefined =
      inherited?.status === 'refused'
        ? inherited
        : refusal !== undefined
          ? { status: 'refused', by: place, reason: refusal }
          : (inherited ?? (row.level === 'ignored' ? { status: 'ignored', by: place, reason: row.reason ?? '' } : undefined));
    rows.push({ ...of, kind, place, row, verdict: verdict ?? { status: 'supported', by: place, reason: '' } });
    below(kind, place, of, of.shape, row.level === 'inside' ? 'inside' : 'supported', verdict);
  };

  const below = (kind: Kind, place: string, of: Member, shape: Shape, level: SupportLevel, verdict: Verdict | undefined): void => {
    if (shape.kind === 'struct') struct(kind, place, shape.type, level, verdict);
    if (shape.kind === 'list') below(kind, `${place}[]`, of, shape.of, supportOf(`${place}[]`, level).level, verdict);
    if (shape.kind !== 'map') return;
    const keys = [...supportTable.keys()].filter((k) => k.startsWith(`${place}[`) && k.endsWith(']') && k !== `${place}[]`);
    const named = keys.map((k) => k.slice(place.length + 1, -1));
    if (named.length > 0 || level === 'inside') named.push(otherKey);
    for (const key of named) {
      const entry = { ...of, name: `${of.name}[${key}]`, shape: shape.of, required: false, pointer: true };
      member(kind, `${place}[${key}]`, entry, level, verdict);
    }
  };

  const struct = (kind: Kind, place: string, type: string, level: SupportLevel, verdict: Verdict | undefined): void => {
    for (const { name, shape, required, pointer } of fieldsOf(type).values()) {
      const at = place === '' ? name : `${place}.${name}`;
      member(kind, at, { name, shape, required, pointer, owner: type, ownerPlace: place }, level, verdict);
    }
  };

  for (const kind of kinds) struct(kind, '', kind, 'supported', undefined);
  const without = rows.filter((r) => r.verdict.status !== 'supported' && r.verdict.by === r.place);
  return rows.map((row) => ({ ...row, partly: without.some((r) => r.kind === row.kind && /^[.[]/.test(after(r.place, row.place))) }));
}
