/** What is told of the sources of one object: which counts, and for whom. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiObject, KeyText, Kind, Source } from '../../src/api/objects.ts';
import type { Entry } from '../../src/config/merge.ts';
import { computeView } from '../../src/config/view.ts';

const sources: readonly Source[] = ['file:a.yaml', 'mqtt:node', 'mqtt:all'];

function phases(kind: Kind): string[] {
  const key = `${kind}/default/one` as KeyText;
  const object = { apiVersion: 'v1', kind, metadata: { name: 'one' } } as unknown as ApiObject;
  const candidates = sources.map((source) => ({ source, revision: source, firstSeen: '', object }));
  const entry: Entry = { key, since: '', winner: 'file:a.yaml', candidates };
  const view = computeView({
    entries: new Map([[key, entry]]),
    files: [],
    pending: new Map(),
    blocked: new Map(),
    hiddenRevision: (r) => r,
    folder: { read: true },
  });
  return (view.objects[0]?.sources ?? []).map((s) => `${s.source} ${s.phase}`);
}

test('of a Pod one source counts; of ConfigMaps and Secrets one of each kind of source, since each side sees its own', () => {
  assert.deepEqual(phases('Pod'), ['file:a.yaml Accepted', 'mqtt:all Shadowed', 'mqtt:node Shadowed']);
  for (const kind of ['ConfigMap', 'Secret'] as const)
    assert.deepEqual(phases(kind), ['file:a.yaml Accepted', 'mqtt:all Shadowed', 'mqtt:node Accepted']);
});
