import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import { runCommand } from '../../src/cli/program.ts';
import { parseDocuments } from '../../src/config/yaml.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { fakeConsole } from '../fakes/fakeConsole.ts';
import { agentView, cs, event, fileStatus, nowMs, ready, sync, told, waiting } from '../operations/view.ts';

interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function command(
  args: readonly string[],
  o: { env?: Record<string, string>; stdin?: string; onSleep?: (times: number) => void } = {},
): Promise<Result> {
  let out = '';
  let err = '';
  let slept = 0;
  const code = await runCommand(args, {
    print: {
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
      nowMs: () => nowMs,
      sleep: async () => o.onSleep?.(++slept),
    },
    env: o.env ?? {},
    stdin: async () => new TextEncoder().encode(o.stdin ?? ''),
    console: fakeConsole,
    bytes: {
      isTerminal: false,
      write: async (bytes) => {
        out += Buffer.from(bytes).toString();
      },
    },
  });
  return { code, out, err };
}

/** An agent that answers on a socket of its own. */
async function withAgent(
  view: AgentView,
  work: (run: (...args: string[]) => Promise<Result>, dir: string) => Promise<void>,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-cli-'));
  const server = await startServer({ socketPath: join(dir, 'podsched.sock'), agent: () => view, log: silentLog });
  try {
    await work((...args) => command(args, { env: { PODSCHED_RUN_DIR: dir } }), dir);
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

test('get pods is the table of kubectl, with what has no pod named under it', () =>
  withAgent(agentView({ sync: () => [sync('web'), sync('bad', { phase: 'Refused', reason: 'Invalid' })] }), async (run) => {
    const { code, out, err } = await run('get', 'pods');
    assert.equal(code, 0);
    assert.equal(out, 'NAME   READY   STATUS    RESTARTS   AGE\nweb    1/1     Running   0          60m\n');
    assert.equal(err, 'Without a pod: bad (Refused: Invalid). podsched why NAME says more.\n');
    const wide = await run('get', 'po', '-A', '-o', 'wide');
    assert.match(
      wide.out,
      /^NAMESPACE {3}NAME .* IP {10}NODE {4}SOURCE {10}REVISION\ndefault .*\nkitchen {5}cam .*pi-07 {3}file:cam\.yaml/,
    );
    assert.match((await run('get', 'pods', '-n', 'nowhere')).err, /^No pods found in namespace nowhere\.\n/);
  }));

test('one object, a list, names: as JSON and as YAML', () =>
  withAgent(agentView(), async (run) => {
    assert.equal(JSON.parse((await run('get', 'pods', 'web', '-o', 'json')).out).metadata.name, 'web');
    assert.equal(JSON.parse((await run('get', 'pod/web', '-o', 'json')).out).metadata.name, 'web');
    const list = JSON.parse((await run('get', 'pods', '-A', '-o', 'json')).out);
    assert.deepEqual([list.kind, list.items.length], ['List', 2]);
    const yaml = parseDocuments((await run('get', 'pods', 'web', '-o', 'yaml')).out);
    assert.equal((yaml.documents[0]?.value as ToldPod | undefined)?.metadata.name, 'web');
    assert.equal((await run('get', 'pods', '-A', '-o', 'name')).out, 'pod/web\npod/cam\n');
    assert.equal(JSON.parse((await run('get', 'pods', '-n', 'nowhere', '-o', 'json')).out).items.length, 0);
  }));

test('several are listed by name, and one that is not there ends with 3', () =>
  withAgent(agentView(), async (run) => {
    assert.equal((await run('get', 'pods', 'web', 'cam', '-A', '-o', 'name')).out, 'pod/web\npod/cam\n');
    assert.match((await run('get', 'pods', 'web', 'mac', '-A')).err, /pod "mac" not found/);
    assert.match((await run('get', 'events', 'nobody')).err, /^No events found in namespace default\.\n$/);
  }));

test('no name that a refused manifest or a file brings speaks to the terminal', () =>
  withAgent(
    agentView({
      sync: () => [sync('ev\u001b[31mil', { phase: 'Refused', reason: 'Invalid' })],
      files: () => [fileStatus('a\u001b[2J\nb.yaml', [{ path: '', file: 'x', expected: 'YAML', got: 'no' }])],
    }),
    async (run) => {
      for (const args of [
        ['get', 'pods'],
        ['get', 'files'],
        ['get', 'files', '-o', 'name'],
        ['why', 'ev\u001b[31mil'],
        ['get', 'pods', 'e\u001b[m'],
      ]) {
        const { out, err } = await run(...args);
        assert.ok(!`${out}${err}`.includes('\u001b'), args.join(' '));
      }
    },
  ));

test('events and files are listed', () =>
  withAgent(agentView(), async (run) => {
    assert.match(
      (await run('get', 'events')).out,
      /^LAST SEEN {3}TYPE {6}REASON {4}OBJECT {4}MESSAGE\n30s {9}Warning {3}BackOff {3}pod\/web {3}back-off 10s\n$/,
    );
    const files = (await run('get', 'files')).out;
    assert.match(files, /half\.yaml {3}<none> .*half\.yaml:2:1: expected YAML, got half of it/);
    assert.match(files, /web\.yaml .*Pod\/default\/web .*Running {3}Ready/);
    assert.equal((await run('get', 'files', 'half.yaml')).code, 0);
  }));

test('what is not there ends with 3 and the nearest name', () =>
  withAgent(agentView({ sync: () => [sync('web'), sync('bad', { phase: 'Refused', reason: 'Invalid' })] }), async (run) => {
    for (const [args, said] of [
      [['get', 'pods', 'wbe'], /did you mean "web"\?/],
      [['describe', 'pod', 'wbe'], /did you mean "web"\?/],
      [['why', 'cam'], /there is one in namespace "kitchen" \(-n kitchen\)/],
      [['get', 'pods', 'bad'], /pod "bad" has not been started: Refused \(Invalid\)/],
      [['get', 'files', 'haf.yaml'], /did you mean half\.yaml\?/],
    ] as const) {
      const { code, out, err } = await run(...args);
      assert.equal(code, 3, args.join(' '));
      assert.equal(out, '');
      assert.match(err, said);
      assert.equal(err.trim().split('\n').length, 1, 'one clear line');
    }
  }));

test('describe and why answer, also as JSON', () =>
  withAgent(
    agentView({
      pods: () => [told('web', { status: { ...ready, containerStatuses: [cs('app', { state: waiting('CrashLoopBackOff') })] } })],
      sync: () => [sync('web', { phase: 'Waiting', reason: 'CrashLoopBackOff', message: 'back-off' })],
      events: () => [event('web', 'BackOff', 'evil\u001b[2J')],
    }),
    async (run) => {
      const described = await run('describe', 'pod', 'web');
      assert.match(described.out, /^Name: +web\n/);
      assert.ok(!described.out.includes('\u001b'), 'no escape sequence reaches the terminal');
      assert.equal((await run('describe', 'pod/web')).out, described.out);
      assert.match((await run('why', 'web')).out, /^web is not running: CrashLoopBackOff\n/);
      const answer = JSON.parse((await run('why', 'pod/web', '-o', 'json')).out);
      assert.deepEqual([answer.well, answer.reason], [false, 'CrashLoopBackOff']);
    },
  ));

test('usage mistakes end with 2, and say what was meant', async () => {
  for (const [args, said] of [
    [[], /Usage: podsched/],
    [['gte', 'pods'], /unknown command 'gte'[\s\S]*Did you mean get\?/],
    [['get'], /missing required argument 'kind'/],
    [['get', 'pdos'], /there is no kind "pdos"[\s\S]*did you mean pods\?/],
    [['get', 'constructor'], /there is no kind/],
    [['get', 'jobs'], /pods, nodes, events, files.* can be listed$/m],
    [['describe', 'pod'], /which one\? podsched describe pod NAME/],
    [['get', 'pods', '-o', 'xml'], /json, yaml, wide, name/],
    [['get', 'pods', '--al-namespaces'], /Did you mean --all-namespaces\?/],
    [['describe', 'secret', 'x'], /pods can be described/],
    [['why'], /missing required argument/],
    [['validate'], /missing required argument/],
  ] as const) {
    const { code, err } = await command(args, { env: { PODSCHED_RUN_DIR: '/nowhere' } });
    assert.equal(code, 2, args.join(' '));
    assert.match(err, said);
  }
});

test('help and version end with 0', async () => {
  for (const args of [['--help'], ['help', 'get'], ['get', '--help'], ['run', '--help'], ['version'], ['--version']]) {
    const { code, out } = await command(args);
    assert.equal(code, 0, args.join(' '));
    assert.ok(out.length > 3);
  }
  const { out } = await command(['--help']);
  for (const name of ['run', 'get', 'describe', 'why', 'validate', 'version', 'Exit codes']) assert.ok(out.includes(name), name);
});

test('without an agent every asking command ends with 4 in one line', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-cli-'));
  try {
    for (const args of [
      ['get', 'pods'],
      ['describe', 'pod', 'web'],
      ['why', 'web'],
    ]) {
      const { code, err } = await command([...args, '--run-dir', dir]);
      assert.equal(code, 4);
      assert.match(err, /^podsched: cannot reach the agent on .*podsched\.sock: there is no such socket.*\n$/);
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test('the socket is found by flag, environment, then the configuration file, even a broken one', () =>
  withAgent(agentView(), async (_, dir) => {
    const config = join(dir, 'podsched.yaml');
    writeFileSync(config, `runDir: ${dir}\nnodeNam: x\n`);
    assert.equal((await command(['get', 'pods', '--config', config])).code, 0);
    assert.equal((await command(['get', 'pods', '--run-dir', dir], { env: { PODSCHED_RUN_DIR: '/nowhere' } })).code, 0);
    assert.equal((await command(['get', 'pods', '--config', config], { env: { PODSCHED_RUN_DIR: '/nowhere' } })).code, 4);
    assert.equal((await command(['get', 'pods', '--config', join(dir, 'none.yaml')])).code, 2);
  }));

test('watch prints the table once, then what has changed, and names what is gone', async () => {
  let pods = [told('web', { status: ready }), told('cam', { status: ready })];
  const dir = mkdtempSync(join(tmpdir(), 'podsched-cli-'));
  const server = await startServer({
    socketPath: join(dir, 'podsched.sock'),
    agent: () => agentView({ pods: () => pods }),
    log: silentLog,
  });
  try {
    const { out, err } = await command(['get', 'pods', '-w', '--run-dir', dir], {
      onSleep: (times) => {
        if (times === 2) pods = [told('web', { status: { phase: 'Succeeded', containerStatuses: [cs('app')] } })];
        if (times === 4) throw new Error('enough');
      },
    });
    assert.deepEqual(
      out
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/\s+/).slice(0, 3).join(' ')),
      ['NAME READY STATUS', 'web 1/1 Running', 'cam 1/1 Running', 'web 0/1 Succeeded'],
    );
    assert.match(err, /default\/pod\/cam is gone\n/);
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

test('validate names each mistake by path, line and column, reads folders and standard input, and ends with 1', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-cli-'));
  const good = 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - {name: app, image: busybox}\n';
  try {
    writeFileSync(join(dir, 'web.yaml'), good);
    assert.deepEqual(await command(['validate', join(dir, 'web.yaml')]), {
      code: 0,
      out: `${dir}/web.yaml: ok (Pod/default/web)\n`,
      err: '',
    });
    writeFileSync(join(dir, 'bad.yaml'), good.replace('busybox', '5').replace('name: web', 'name: Web_1'));
    writeFileSync(join(dir, 'podsched.yaml'), 'nodeNam: x\n');
    writeFileSync(join(dir, 'notes.txt'), 'x');
    mkdirSync(join(dir, 'empty'));
    const { code, out } = await command(['validate', dir]);
    assert.equal(code, 1);
    assert.match(out, new RegExp(`^${dir}/bad\\.yaml:4:9: metadata\\.name: expected`, 'm'));
    assert.match(out, new RegExp(`^${dir}/bad\\.yaml:7:\\d+: spec\\.containers\\[0\\]\\.image: expected`, 'm'));
    assert.match(out, new RegExp(`^${dir}/podsched\\.yaml:1:10: nodeNam: .*did you mean nodeName\\?$`, 'm'));
    assert.ok(!out.includes('notes.txt'));
    assert.equal((await command(['validate', '-'], { stdin: good })).code, 0);
    assert.match((await command(['validate', '-'], { stdin: 'kind: [' })).out, /^stdin:1:/);
    assert.equal((await command(['validate', join(dir, 'none.yaml')])).code, 1);
    assert.equal((await command(['validate', join(dir, 'empty')])).code, 3);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test('run loads none of the tables, and the other commands nothing of the agent', () => {
  const src = new URL('../../src/', import.meta.url).pathname;
  /** Everything that comes with a file, dynamic imports left out. */
  const reach = (file: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(file)) return seen;
    seen.add(file);
    if (!file.startsWith('/')) return seen;
    for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(/^import\s+(?!type\s)[^;]*?from\s+'([^']+)'/gm)) {
      reach(from.startsWith('.') ? join(file, '..', from) : from, seen);
    }
    return seen;
  };
  assert.ok(readdirSync(join(src, 'cli')).includes('run.ts'));
  const run = reach(join(src, 'cli/run.ts'));
  for (const name of ['commander', 'cli-table3', join(src, 'agent.ts'), join(src, 'cli/program.ts')]) assert.ok(!run.has(name), name);
  const program = reach(join(src, 'cli/program.ts'));
  for (const name of ['@grpc/grpc-js', 'mqtt', 'aedes', join(src, 'agent.ts'), join(src, 'kubelet.ts')])
    assert.ok(!program.has(name), name);
});
