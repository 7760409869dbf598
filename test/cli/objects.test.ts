import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../../src/cli/program.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import type { ListedObject } from '../../src/operations/objects.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { fakeConsole } from '../fakes/fakeConsole.ts';
import { agentView, nowMs, sync } from '../operations/view.ts';

const object = (kind: ListedObject['kind'], name: string, o: Partial<ListedObject> = {}): ListedObject => ({
  apiVersion: 'podsched.dev/v1',
  kind,
  metadata: { namespace: 'default', name, creationTimestamp: '2026-01-01T00:00:00Z' },
  immutable: false,
  keys: ['a', 'b'],
  source: 'file:o.yaml',
  revision: 'abc123abc123',
  usedBy: [],
  ...o,
});
const view = agentView({
  objects: () => [
    object('ConfigMap', 'site', { usedBy: ['api', 'web'] }),
    object('ConfigMap', 'far', { metadata: { namespace: 'kitchen', name: 'far', creationTimestamp: '2026-01-01T00:59:00Z' } }),
    object('Secret', 'db', { type: 'Opaque', immutable: true }),
  ],
  sync: () => [sync('bad', { object: { kind: 'ConfigMap', namespace: 'default', name: 'bad' }, phase: 'Refused', reason: 'Invalid' })],
});

async function run(agent: AgentView, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-cli-'));
  const server = await startServer({ socketPath: join(dir, 'podsched.sock'), agent: () => agent, log: silentLog });
  const said = { out: '', err: '' };
  const print = {
    out: (text: string) => {
      said.out += text;
    },
    err: (text: string) => {
      said.err += text;
    },
    nowMs: () => nowMs,
    sleep: async () => {},
  };
  const bytes = { isTerminal: false, write: async () => {} };
  try {
    const env = { PODSCHED_RUN_DIR: dir };
    const code = await runCommand(args, { print, env, stdin: async () => new Uint8Array(), console: fakeConsole, bytes });
    return { code, ...said };
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

test('get configmaps and get secrets are tables of names, keys and users', async () => {
  const maps = await run(view, 'get', 'cm');
  assert.deepEqual(maps.out.split('\n'), ['NAME   DATA   AGE   USED BY', 'site   2      60m   api,web', '']);
  const secrets = await run(view, 'get', 'secrets');
  assert.deepEqual(secrets.out.split('\n'), ['NAME   TYPE     DATA   AGE   USED BY', 'db     Opaque   2      60m   <none>', '']);
  const all = await run(view, 'get', 'configmaps', '-A', '-o', 'wide');
  assert.match(all.out, /^kitchen +far +2 +60s +<none> +a,b +false +file:o\.yaml +abc123abc123$/m);
  assert.equal((await run(view, 'get', 'configmap/site', '-o', 'name')).out, 'configmap/site\n');
  const json = JSON.parse((await run(view, 'get', 'secret', 'db', '-o', 'json')).out) as ListedObject;
  assert.deepEqual([json.kind, json.keys], ['Secret', ['a', 'b']]);
});

test('a name that is not there is told with what is near, or with why it was refused', async () => {
  const unknown = await run(view, 'get', 'configmaps', 'sit');
  assert.deepEqual(
    [unknown.code !== 0, unknown.err.trim()],
    [true, 'podsched: there is no configmap "sit" in namespace default; did you mean site?'],
  );
  const refused = await run(view, 'get', 'configmaps', 'bad');
  assert.match(refused.err, /configmap "bad" has not been accepted: Refused \(Invalid\); podsched why configmap\/bad says more/);
  assert.equal((await run(agentView(), 'get', 'secrets')).err, 'No secrets found in namespace default.\n');
});
