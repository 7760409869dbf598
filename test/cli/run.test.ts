import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { AgentOptions, RunningAgent } from '../../src/agent.ts';
import type { PodschedConfiguration } from '../../src/api/configuration.ts';
import { readLastGood } from '../../src/cli/configFile.ts';
import { run } from '../../src/cli/run.ts';
import type { NodeCondition } from '../../src/operations/agentView.ts';
import { agentView } from '../operations/view.ts';

let dir = '';
let file = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'podsched-run-'));
  file = join(dir, 'podsched.yaml');
});
afterEach(() => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.removeAllListeners(signal);
  rmSync(dir, { recursive: true, force: true });
});

interface Told {
  readonly config: PodschedConfiguration;
  readonly conditions: readonly NodeCondition[];
}

const until = async (what: string, done: () => boolean): Promise<void> => {
  for (let i = 0; !done(); i++) {
    assert.ok(i < 6000, `waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** `podsched run` with an agent that only remembers. */
function start(args: readonly string[], o: { readonly env?: Record<string, string>; readonly fail?: Error } = {}) {
  const told: Told[] = [];
  const state = { stopped: 0, log: '', outgrown: () => {} };
  const agent: RunningAgent = {
    view: agentView(),
    reload: (config, conditions) => told.push({ config, conditions }),
    stop: async () => {
      state.stopped++;
    },
  };
  const code = run(args, {
    loadAgent: async () => ({
      startAgent: async ({ config, conditions, outgrown }: AgentOptions) => {
        if (o.fail !== undefined) throw o.fail;
        state.outgrown = outgrown;
        told.push({ config, conditions });
        return agent;
      },
    }),
    onLog: () => {},
    env: o.env ?? {},
    write: (line) => {
      state.log += line;
    },
  });
  const started = () => until('the agent', () => told.length > 0);
  return { code, told, state, started };
}

/** Starts, lets it keep what it runs with, and stops it. */
async function once(args: readonly string[]): Promise<Told> {
  const running = start(args);
  await running.started();
  process.emit('SIGTERM', 'SIGTERM');
  assert.equal(await running.code, 0);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.removeAllListeners(signal);
  const [first] = running.told;
  assert.ok(first);
  return first;
}

const write = (text: string): void => writeFileSync(file, text);
const types = (t: Told | undefined): string[] => (t?.conditions ?? []).map((c) => c.type);

test('SIGTERM and SIGINT stop the agent once and end with 0', async () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    write(`stateDir: ${dir}/state\n`);
    const running = start(['--config', file, '--nodeName=a']);
    await running.started();
    process.emit(signal, signal);
    assert.equal(await running.code, 0);
    assert.equal(running.state.stopped, 1);
    assert.equal(running.told[0]?.config.nodeName, 'a');
    process.removeAllListeners('SIGTERM');
    process.removeAllListeners('SIGINT');
  }
});

test('a wrong configuration without a good one ends with 2 and lists every mistake', async () => {
  write(`stateDir: ${dir}/state\nnodeNam: x\nmqtt: {keepalive: 1}\n`);
  const running = start(['--config', file, '--mqtt.prefix=+'], { env: { PODSCHED_STRICT: 'maybe' } });
  assert.equal(await running.code, 2);
  const lines = running.state.log.trim().split('\n');
  assert.equal(lines.length, 4);
  assert.ok(lines.some((l) => l.startsWith(`podsched: ${file}:2:10: nodeNam: `)));
  assert.equal(running.told.length, 0);
});

test('usage mistakes, and a file that is not there, end with 2', async () => {
  assert.equal(await start(['now']).code, 2);
  write(`stateDir: ${dir}/state\nnodeNam: x\n`);
  const running = start(['now', '--config', file, '--maxPods=many']);
  assert.equal(await running.code, 2);
  assert.equal(running.state.log.trim().split('\n').length, 3, 'arguments, flags and file at once');
  assert.equal(await start(['--config', join(dir, 'none.yaml'), `--stateDir=${dir}/state`]).code, 2);
});

test('a file that turns wrong, empty or to no YAML leaves the last good one running, with its condition', async () => {
  write(`stateDir: ${dir}/state\nnodeName: good\n`);
  assert.deepEqual(types(await once(['--config', file])), []);
  // its stateDir is named in the very file that turns bad
  for (const text of ['', '# gone\n', 'nodeName: a.b\n', `stateDir: ${dir}/state\nnodeName: [\n`, 'stateDir: [\n', '\0\0\0']) {
    write(text);
    const told = await once(['--config', file]);
    assert.equal(told.config.nodeName, 'good', JSON.stringify(text));
    assert.deepEqual(types(told), ['ConfigurationInvalid'], JSON.stringify(text));
  }
  rmSync(file);
  assert.deepEqual(types(await once(['--config', file])), ['ConfigurationInvalid']);
  write(`stateDir: ${dir}/state\n`);
  const back = await once(['--config', file]);
  assert.deepEqual([back.config.nodeName, types(back)], ['', []]);
});

test('flags of today go over the last good file', async () => {
  write('nodeName: good\n');
  await once(['--config', file, `--stateDir=${dir}/state`]);
  assert.ok(!existsSync(join(dir, '.podsched.yaml.state-dir')), 'a pointer only for a file that names its own stateDir');
  write('nodeNam: x\n');
  const told = await once(['--config', file, `--stateDir=${dir}/state`, '--mqtt.prefix=today']);
  assert.deepEqual([told.config.nodeName, told.config['mqtt.prefix']], ['good', 'today']);
});

test('SIGHUP applies what is live, tells what waits, keeps what is good, and ignores what is wrong', async () => {
  write(`stateDir: ${dir}/state\nnodeName: a\n`);
  const running = start(['--config', file]);
  await running.started();
  await until('the good one to be kept', () => existsSync(join(dir, 'state/configuration/configuration.json')));
  const hup = async (text: string, n: number): Promise<Told | undefined> => {
    write(text);
    process.emit('SIGHUP', 'SIGHUP');
    await until('the reload', () => running.told.length === n);
    return running.told[n - 1];
  };
  const live = await hup(`stateDir: ${dir}/state\nnodeName: b\nnodeLabels: {site: attic}\nlogging: {level: error}\n`, 2);
  assert.deepEqual([live?.config.nodeName, live?.config.nodeLabels, types(live)], ['a', { site: 'attic' }, ['RestartNeeded']]);
  assert.match(live?.conditions[0]?.message ?? '', /nodeName/);
  for (let i = 0; (await readLastGood(join(dir, 'state')))?.file.nodeLabels === undefined; i++) {
    assert.ok(i < 6000, 'waited in vain for it to be kept');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const wrong = await hup('nodeName: [\n', 3);
  assert.deepEqual([wrong?.config.nodeLabels, types(wrong)], [{ site: 'attic' }, ['ConfigurationInvalid']]);
  const empty = await hup('', 4);
  assert.deepEqual([empty?.config.nodeLabels, types(empty)], [{ site: 'attic' }, ['ConfigurationInvalid']]);
  process.emit('SIGTERM', 'SIGTERM');
  assert.equal(await running.code, 0);
  assert.ok(!running.state.log.includes('podsched stops'), 'the log level error is in force');
});

test('an agent that cannot start ends with 1, and what it was to run with is not kept', async () => {
  write(`stateDir: ${dir}/state\n`);
  const running = start(['--config', file], { fail: new Error('another podsched agent answers') });
  assert.equal(await running.code, 1);
  assert.match(running.state.log, /another podsched agent answers/);
  assert.ok(!existsSync(join(dir, 'state')));
});

test('H5: an agent that has become too large is stopped in order, and the exit says that it should be started again', async () => {
  write(`stateDir: ${dir}/state\n`);
  const running = start(['--config', file]);
  await running.started();
  running.state.outgrown();
  assert.equal(await running.code, 1);
  assert.equal(running.state.stopped, 1);
  assert.match(running.state.log, /its pods keep running/);
});
