/** Sessions with processes in containers of a real containerd: what src/cri/streaming.ts says is understood, and what comes back is whole. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { isNotFound, type StreamOptions, type StreamTarget } from '../../src/container/runtime.ts';
import type { ContainerId } from '../../src/container/words.ts';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { type ExecSession, openSession, upgradeHeaders } from '../../src/cri/streaming.ts';
import { silentLog } from '../../src/world/log.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { type Bed, startBed } from './bed.ts';
import { sleep, until } from './process.ts';

let bed: Bed;
let runtime: CriRuntime;
let main: ContainerId;
let shell: ContainerId;
before(async () => {
  bed = await startBed({ name: 'streaming' });
  runtime = new CriRuntime({ endpoint: bed.endpoint, log: silentLog });
  const pod = sandboxConfig('web', { logDirectory: `${bed.dir}/logs` });
  const sandbox = await runtime.runSandbox(pod, '');
  const start = async (name: string, more: Parameters<typeof containerConfig>[2]) => {
    const id = await runtime.createContainer(sandbox, containerConfig(pod, name, more), pod);
    await runtime.startContainer(id);
    return id;
  };
  main = await start('main', {});
  shell = await start('shell', { command: ['/bin/sh'], stdin: true, stdinOnce: true, tty: true });
});
after(async () => {
  runtime?.close();
  await bed?.stop();
});

const plain: StreamOptions = { stdin: false, stdout: true, stderr: true, tty: false };
const piped: StreamOptions = { ...plain, stdin: true };
const terminal: StreamOptions = { stdin: true, stdout: true, stderr: false, tty: true };

/** Opened as the agent's proxy and the command do it together. */
const open = (target: StreamTarget, o: StreamOptions): Promise<ExecSession> =>
  new Promise((resolve, reject) => {
    const asked = request({ ...target, method: 'POST', headers: upgradeHeaders, agent: false });
    asked.on('upgrade', (_, socket, head) => resolve(openSession(socket, head, o)));
    asked.on('response', (r) => reject(new Error(`answered ${r.statusCode}`)));
    asked.on('error', reject);
    asked.end();
  });
const exec = async (script: string, o: StreamOptions = plain): Promise<ExecSession> =>
  open(await runtime.execTarget(main, ['/bin/sh', '-c', script], o), o);

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}
async function all(session: ExecSession): Promise<Said> {
  const said = { stdout: '', stderr: '' };
  for await (const { stream, data } of session.output) said[stream] += Buffer.from(data).toString();
  return { code: await session.done, ...said };
}

describe('a session with a real container', { concurrency: 2 }, () => {
  test('output, errors and the exit code come apart', async () => {
    assert.deepEqual(await all(await exec('echo out; echo err >&2; exit 7')), { code: 7, stdout: 'out\n', stderr: 'err\n' });
    assert.deepEqual(await all(await exec('true')), { code: 0, stdout: '', stderr: '' });
  });

  test('standard input ends while output goes on', async () => {
    const session = await exec('cat; echo after', piped);
    await session.write(Buffer.from('some\n'));
    await session.write(Buffer.from('text\n'));
    session.closeStdin();
    assert.deepEqual(await all(session), { code: 0, stdout: 'some\ntext\nafter\n', stderr: '' });
    const empty = await exec('wc -c', piped);
    empty.closeStdin();
    assert.equal((await all(empty)).stdout.trim(), '0');
  });

  test('five megabytes go in and come out whole, also to a reader that takes its time', async () => {
    const session = await exec('tee /dev/stderr | wc -c; exit 3', piped);
    const chunk = Buffer.alloc(100_000, 'x');
    const writing = (async () => {
      for (let i = 0; i < 50; i++) await session.write(chunk);
      session.closeStdin();
    })();
    let bytes = 0;
    let count = '';
    for await (const { stream, data } of session.output) {
      if (stream === 'stdout') count += Buffer.from(data).toString();
      else bytes += data.length;
      if (bytes % 7 === 0) await sleep(5);
    }
    await writing;
    assert.deepEqual([bytes, count.trim(), await session.done], [5_000_000, '5000000', 3]);
  });

  test('a reader that stands still holds the writer up, and nothing is held in memory beyond measure', async () => {
    const before = process.memoryUsage().arrayBuffers;
    const session = await exec('head -c 200000000 /dev/zero; echo end >&2');
    await sleep(1500);
    assert.ok(process.memoryUsage().arrayBuffers - before < 20_000_000);
    session.close();
    await assert.rejects(session.done, /it was closed here/);
  });

  test('a terminal has a size, which may change', async () => {
    // nobody says when a new size has come there
    const wait = 'i=0; while [ "$(stty size)" != "17 91" ] && [ $i -lt 300 ]; do i=$((i+1)); sleep 0.1; done';
    const session = await exec(`stty size; read x; ${wait}; stty size; tty; exit 5`, terminal);
    session.resize({ columns: 100, rows: 40 });
    let text = '';
    const reading = (async () => {
      for await (const { data } of session.output) text += Buffer.from(data).toString();
    })();
    await sleep(500);
    session.resize({ columns: 91, rows: 17 });
    await sleep(200);
    await session.write(Buffer.from('go\n'));
    await reading;
    assert.match(text, /17 91\r\n\/dev\/pts\/\d+\r\n$/);
    assert.equal(await session.done, 5);
  });

  test('what cannot be started says why', async () => {
    const session = await open(await runtime.execTarget(main, ['/nowhere/nothing'], plain), plain);
    for await (const _ of session.output);
    await assert.rejects(session.done, /nothing|no such file/);
    await assert.rejects(runtime.execTarget('0'.repeat(64) as ContainerId, ['true'], plain), isNotFound);
  });

  test('a process whose session is closed finds its input at an end', async () => {
    const session = await exec('echo $$; cat; echo ended > /tmp/ended', piped);
    for await (const _ of session.output) break;
    session.close();
    await until('the process has ended', 45_000, async () => (await runtime.execSync(main, ['cat', '/tmp/ended'], 5)).exitCode === 0);
  });

  test('of forty short sessions none loses its end', { timeout: 120_000 }, async () => {
    for (let i = 0; i < 40; i++) assert.deepEqual(await all(await exec(`echo ${i}; exit ${i}`)), { code: i, stdout: `${i}\n`, stderr: '' });
  });

  test('one attaches to the container’s own process, and its end ends the session', async () => {
    const session = await open(await runtime.attachTarget(shell, terminal), terminal);
    session.resize({ columns: 100, rows: 40 });
    await session.write(Buffer.from('echo $((6*7)); exit 4\n'));
    const { stdout, code } = await all(session);
    assert.match(stdout, /\b42\r\n/);
    assert.equal(code, 0);
    await until('it has ended', 45_000, async () => (await runtime.containerStatus(shell)).exitCode === 4);
  });
});
