import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AgentView } from '../../src/operations/agentView.ts';
import { startServer } from '../../src/server/server.ts';
import { isAlreadyRunning } from '../../src/server/socket.ts';
import { silentLog } from '../../src/world/log.ts';
import { agentView } from '../operations/view.ts';

async function inFolder(work: (dir: string, socketPath: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-server-'));
  try {
    await work(dir, join(dir, 'podsched.sock'));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const start = (socketPath: string, view: AgentView | undefined = agentView()) =>
  startServer({ socketPath, agent: () => view, log: silentLog });

interface Response {
  readonly status: number;
  readonly type: string | undefined;
  readonly allow: string | undefined;
  readonly body: string;
}

const ask = (socketPath: string, path: string, method = 'GET', body?: string): Promise<Response> =>
  new Promise((resolve, reject) => {
    const r = request({ socketPath, path, method, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          type: response.headers['content-type'],
          allow: response.headers.allow,
          body: text,
        }),
      );
    });
    r.on('error', reject);
    r.end(body);
  });

/** The file of an agent that was killed: bound, and nobody listens. */
async function leaveStale(socketPath: string): Promise<void> {
  const dead = createServer();
  await new Promise<void>((resolve) => dead.listen(`${socketPath}.dead`, resolve));
  const { linkSync } = await import('node:fs');
  linkSync(`${socketPath}.dead`, socketPath);
  await new Promise<void>((resolve) => dead.close(() => resolve()));
  assert.ok(existsSync(socketPath));
}

test('every path answers with what the view says, in Kubernetes’ shapes where there is one', () =>
  inFolder(async (_, socketPath) => {
    const server = await start(socketPath);
    const kind = async (path: string) => JSON.parse((await ask(socketPath, path)).body);
    assert.equal((await ask(socketPath, '/healthz')).body, 'ok');
    assert.equal((await ask(socketPath, '/livez')).body, 'ok');
    const pods = await kind('/pods');
    assert.deepEqual([pods.kind, pods.apiVersion, pods.items.length], ['PodList', 'v1', 2]);
    assert.equal((await kind('/pods?namespace=kitchen')).items.length, 1);
    assert.equal((await kind('/sync')).kind, 'SyncStatusList');
    assert.equal((await kind('/sync?name=web')).items.length, 1);
    assert.equal((await kind('/files')).items[0].file, 'half.yaml');
    assert.deepEqual([(await kind('/events')).kind, (await kind('/events')).apiVersion], ['EventList', 'v1']);
    assert.deepEqual((await kind('/configz')).podschedconfig, { runDir: '/run/podsched', staticPodPath: '/etc/podsched' });
    assert.deepEqual(await kind('/version'), { version: '1.2.3', nodeName: 'pi-07' });
    assert.equal((await kind('/conditions')).kind, 'ConditionList');
    const head = await ask(socketPath, '/pods', 'HEAD');
    assert.deepEqual([head.status, head.body], [200, '']);
    await server.close();
    assert.ok(!existsSync(socketPath));
  }));

test('what cannot be answered is a v1 Status with its code', () =>
  inFolder(async (_, socketPath) => {
    const broken: AgentView = {
      ...agentView(),
      pods: () => {
        throw new Error('broken');
      },
    };
    const server = await start(socketPath, broken);
    for (const [path, method, status, reason] of [
      ['/nothing', 'GET', 404, 'NotFound'],
      ['/constructor', 'GET', 404, 'NotFound'],
      ['/pods', 'POST', 405, 'MethodNotAllowed'],
      ['/livez', 'DELETE', 405, 'MethodNotAllowed'],
      ['/pods', 'GET', 500, 'InternalError'],
    ] as const) {
      const answer = await ask(socketPath, path, method, method === 'POST' ? 'x'.repeat(100_000) : undefined);
      const body = JSON.parse(answer.body);
      assert.deepEqual(
        [answer.status, body.kind, body.status, body.reason, body.code],
        [status, 'Status', 'Failure', reason, status],
        path,
      );
      if (status === 405) assert.equal(answer.allow, 'GET, HEAD');
    }
    assert.equal((await ask(socketPath, `/${'x'.repeat(20_000)}`)).status, 431);
    await server.close();
  }));

test('a failing check makes /healthz 503 and names each check', () =>
  inFolder(async (_, socketPath) => {
    const server = await start(socketPath, {
      ...agentView(),
      health: () => [
        { name: 'runtime', ok: false, message: 'no containerd' },
        { name: 'manifests', ok: true, message: 'ok' },
      ],
    });
    const { status, body } = await ask(socketPath, '/healthz');
    assert.equal(status, 503);
    assert.match(body, /^\[-\]runtime failed: no containerd\n\[\+\]manifests ok\n/);
    assert.equal((await ask(socketPath, '/livez')).status, 200);
    await server.close();
  }));

test('while the agent starts everything but /livez is 503', () =>
  inFolder(async (_, socketPath) => {
    let view: AgentView | undefined;
    const server = await startServer({ socketPath, agent: () => view, log: silentLog });
    assert.equal((await ask(socketPath, '/pods')).status, 503);
    assert.equal((await ask(socketPath, '/livez')).status, 200);
    view = agentView();
    assert.equal((await ask(socketPath, '/pods')).status, 200);
    await server.close();
  }));

test('only owner and group may use the socket, and nothing else is left in the folder', () =>
  inFolder(async (dir, socketPath) => {
    const server = await start(socketPath);
    assert.equal(statSync(socketPath).mode & 0o7777, 0o660);
    assert.deepEqual(readdirSync(dir), ['podsched.sock']);
    await server.close();
    assert.deepEqual(readdirSync(dir), []);
  }));

test('a second agent is refused while the first answers, and leaves its socket alone', () =>
  inFolder(async (dir, socketPath) => {
    const first = await start(socketPath);
    await assert.rejects(start(socketPath), (e) => isAlreadyRunning(e));
    assert.equal((await ask(socketPath, '/livez')).status, 200);
    assert.deepEqual(readdirSync(dir), ['podsched.sock']);
    await first.close();
  }));

test('a socket that nobody listens on, and a plain file in its place, are replaced', () =>
  inFolder(async (_, socketPath) => {
    await leaveStale(socketPath);
    const first = await start(socketPath);
    assert.equal((await ask(socketPath, '/livez')).status, 200);
    await first.close();
    writeFileSync(socketPath, 'x');
    const second = await start(socketPath);
    assert.equal((await ask(socketPath, '/livez')).status, 200);
    await second.close();
  }));

test('a folder in its place is an error, and stays', () =>
  inFolder(async (dir, socketPath) => {
    mkdirSync(socketPath);
    await assert.rejects(start(socketPath), /is a folder/);
    assert.deepEqual(readdirSync(dir), ['podsched.sock']);
  }));

test('of agents that start at once over a stale socket, one becomes the agent', () =>
  inFolder(async (dir, socketPath) => {
    for (let round = 0; round < 20; round++) {
      await leaveStale(socketPath);
      const started = await Promise.allSettled([start(socketPath), start(socketPath)]);
      const winners = started.filter((s) => s.status === 'fulfilled');
      assert.equal(winners.length, 1, `round ${round}`);
      assert.ok(started.every((s) => s.status === 'fulfilled' || isAlreadyRunning(s.reason)));
      assert.equal((await ask(socketPath, '/livez')).status, 200);
      await winners[0]?.value.close();
      assert.deepEqual(readdirSync(dir), []);
    }
  }));

test('a socket file that another agent has put there meanwhile is not removed at the end', () =>
  inFolder(async (_, socketPath) => {
    const first = await start(socketPath);
    rmSync(socketPath);
    const second = await start(socketPath);
    await first.close();
    assert.equal((await ask(socketPath, '/livez')).status, 200);
    await second.close();
  }));

test('closing does not wait for a client that says nothing', () =>
  inFolder(async (_, socketPath) => {
    const server = await start(socketPath);
    const idle = connect(socketPath);
    await new Promise<void>((resolve) => idle.once('connect', resolve));
    const ended = new Promise<void>((resolve) => idle.once('close', () => resolve()));
    await server.close();
    await ended;
  }));
