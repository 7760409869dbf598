// pure
/** `_config`: what may be changed of a node from afar, checked by hand. Unknown fields are passed over; a wrong one refuses the whole. */

import type { NodeConfig } from '../api/messages.ts';
import { wrongLabel, wrongLabelValue, wrongQualifiedName } from '../api/names.ts';
import type { Problem } from '../api/objects.ts';
import { isPlain } from '../api/plain.ts';
import { shown } from '../api/scalars.ts';

export type ReadNodeConfig =
  | { readonly ok: true; readonly config: NodeConfig }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const mostGroups = 32;
const mostLabels = 64;
const mostProblems = 10;
const levels = ['debug', 'info', 'warn', 'error'] as const;

export function readNodeConfig(value: unknown): ReadNodeConfig {
  const problems: Problem[] = [];
  const wrong = (path: string, expected: string, got: unknown): void => {
    if (problems.length < mostProblems) problems.push({ path, expected, got: shown(got) });
  };
  if (!isPlain(value)) return { ok: false, problems: [{ path: '', expected: 'a NodeConfig', got: shown(value) }] };
  if (value.apiVersion !== 'podsched.dev/v1') wrong('apiVersion', 'podsched.dev/v1', value.apiVersion);
  if (value.kind !== 'NodeConfig') wrong('kind', 'NodeConfig', value.kind);
  const { generation, heartbeatSeconds, logLevel } = value;
  const isCount = (v: unknown, least: number, most: number): v is number =>
    Number.isSafeInteger(v) && Number(v) >= least && Number(v) <= most;
  if (generation !== undefined && !isCount(generation, 0, Number.MAX_SAFE_INTEGER))
    wrong('generation', 'a whole number from 0', generation);
  if (heartbeatSeconds !== undefined && !isCount(heartbeatSeconds, 5, 86_400))
    wrong('heartbeatSeconds', 'a whole number from 5 to 86400', heartbeatSeconds);
  const level = levels.find((l) => l === logLevel);
  if (logLevel !== undefined && level === undefined) wrong('logLevel', `one of ${levels.join(', ')}`, logLevel);
  const groups = value.groups === undefined ? undefined : readGroups(value.groups, wrong);
  const labels = value.labels === undefined ? undefined : readLabels(value.labels, wrong);
  if (problems.length > 0) return { ok: false, problems };
  return {
    ok: true,
    config: {
      apiVersion: 'podsched.dev/v1',
      kind: 'NodeConfig',
      ...(typeof generation === 'number' && { generation }),
      ...(groups !== undefined && { groups }),
      ...(labels !== undefined && { labels }),
      ...(typeof heartbeatSeconds === 'number' && { heartbeatSeconds }),
      ...(level !== undefined && { logLevel: level }),
    },
  };
}

type Wrong = (path: string, expected: string, got: unknown) => void;

function readGroups(value: unknown, wrong: Wrong): readonly string[] {
  if (!Array.isArray(value) || value.length > mostGroups) {
    wrong('groups', `a list of at most ${mostGroups} names`, Array.isArray(value) ? `${value.length} names` : value);
    return [];
  }
  const groups: string[] = [];
  for (const [i, group] of (value as readonly unknown[]).entries()) {
    const expected = typeof group === 'string' ? wrongLabel(group) : 'a name';
    if (expected !== undefined) wrong(`groups[${i}]`, expected, group);
    else if (typeof group === 'string' && !groups.includes(group)) groups.push(group);
  }
  return groups;
}

function readLabels(value: unknown, wrong: Wrong): Readonly<Record<string, string>> {
  if (!isPlain(value) || Object.keys(value).length > mostLabels) {
    wrong('labels', `a mapping of at most ${mostLabels} labels`, isPlain(value) ? `${Object.keys(value).length} labels` : value);
    return {};
  }
  for (const [key, label] of Object.entries(value)) {
    const expected = wrongQualifiedName(key) ?? (typeof label === 'string' ? wrongLabelValue(label) : 'text');
    if (expected !== undefined) wrong(`labels[${key.slice(0, 80)}]`, expected, label);
  }
  return Object.fromEntries(Object.entries(value).flatMap(([key, label]) => (typeof label === 'string' ? [[key, label]] : [])));
}
