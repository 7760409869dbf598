import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../src/api/desired.ts';
import { type KeyText, keyText } from '../src/api/objects.ts';
import type { SyncView } from '../src/status/sync.ts';
import { type FileView, Telling } from '../src/telling.ts';
import { desiredPod } from './pod/desiredPod.ts';

function rig() {
  const objects = new Map<KeyText, SyncView>();
  const files = new Map<string, FileView>();
  const instances = new Map<KeyText, DesiredPod>();
  const unseen = new Set<string>();
  const said: string[] = [];
  const telling = new Telling({
    view: () => ({ objects: [...objects.values()], files: [...files.values()] }),
    instance: (key) => instances.get(key),
    live: () => ({ state: 'sync' }),
    isUnseen: (pod) => pod !== undefined && unseen.has(pod.uid),
    setSync: (key, body) => said.push(`${keyText(key)} ${body?.phase ?? 'gone'}`),
    setFile: (file, body) => said.push(`${file} ${body?.problems.length ?? 'gone'}`),
  });
  const accept = (name: string): KeyText => {
    const key = keyText({ kind: 'Pod', namespace: 'default', name });
    const source = { source: `file:${name}.yaml`, revision: 'r' } as const;
    const told = { ...source, phase: 'Accepted', reason: 'Accepted', message: '', problems: [], warnings: [] } as const;
    objects.set(key, { kind: 'Pod', namespace: 'default', name, winner: source, sources: [told] });
    return key;
  };
  const turn = async (): Promise<string[]> => {
    await Promise.resolve();
    return said.splice(0);
  };
  return { objects, files, instances, unseen, telling, accept, turn };
}

test('an object is told once a turn, however many reasons there were', async () => {
  const { telling, accept, turn } = rig();
  const web = accept('web');
  telling.mark([web]);
  telling.mark([web, web]);
  assert.deepEqual(await turn(), ['Pod/default/web Accepted']);
  assert.deepEqual(await turn(), []);
});

test('removed from the folder it is told as ending while its pod ends, then gone', async () => {
  const { objects, instances, telling, accept, turn } = rig();
  const web = accept('web');
  instances.set(web, desiredPod('web', 'u1'));
  telling.mark([web]);
  await turn();
  objects.delete(web);
  telling.mark([web]);
  assert.deepEqual(await turn(), ['Pod/default/web Terminating']);
  instances.delete(web);
  telling.mark([web]);
  assert.deepEqual(await turn(), ['Pod/default/web gone']);
});

test('when the runtime goes or comes, all that was told is told anew, and what is gone is not', async () => {
  const { objects, telling, accept, turn } = rig();
  const [web, db] = [accept('web'), accept('db')];
  telling.mark([web, db]);
  await turn();
  objects.delete(db);
  telling.mark([db]);
  await turn();
  telling.markAll();
  assert.deepEqual(await turn(), ['Pod/default/web Accepted']);
});

test('a file is told while it is there, and gone once', async () => {
  const { files, telling, turn } = rig();
  const problem = { path: 'kind', expected: 'Pod', got: 'Pdo' };
  files.set('web.yaml', { file: 'web.yaml', objects: [], problems: [problem], warnings: [] });
  telling.markFiles();
  assert.deepEqual(await turn(), ['web.yaml 1']);
  files.set('web.yaml', { file: 'web.yaml', objects: [], problems: [], warnings: [] });
  telling.markFiles();
  assert.deepEqual(await turn(), ['web.yaml gone'], 'nothing is wrong with it any more');
  files.delete('web.yaml');
  telling.markFiles();
  assert.deepEqual(await turn(), ['web.yaml gone']);
  telling.markFiles();
  assert.deepEqual(await turn(), []);
});

test('a pod that nobody has looked at yet in this run keeps what was told of it, and is told when somebody has', async () => {
  const { instances, unseen, telling, accept, turn } = rig();
  const web = accept('web');
  instances.set(web, desiredPod('web', 'u1'));
  unseen.add('u1');
  telling.mark([web]);
  assert.deepEqual(await turn(), []);
  unseen.clear();
  telling.markFiles();
  assert.deepEqual(await turn(), ['Pod/default/web Accepted'], 'its mark was kept');
});
