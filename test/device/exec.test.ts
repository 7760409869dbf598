/** `podsched exec` and `debug` with the real bundle on a real containerd, in pipes and in a real terminal. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { container, manifest, pod } from './manifest.ts';
import { sleep, until } from './process.ts';

const command = new URL('../../systemd/podsched', import.meta.url).pathname;
const bundle = new URL('../../bundle/podsched.cjs', import.meta.url).pathname;

let bed: Bed;
let agent: Agent;
const env = () => ({ ...process.env, PODSCHED_BUNDLE: bundle, PODSCHED_RUN_DIR: agent.runDir, TERM: 'xterm' });

const podOf = async (name: string): Promise<ToldPod | undefined> =>
  ((JSON.parse((await agent.get('/pods')).body) as { items?: ToldPod[] }).items ?? []).find((p) => p.metadata.name === name);
const runs = (name: string): Promise<void> =>
  until(`${name} runs`, 90_000, async () => (await podOf(name))?.status.containerStatuses?.every((c) => c.state.running) === true);

before(async () => {
  bed = await startBed({ name: 'exec' });
  agent = await startAgent(bed, { nodeName: 'exec' });
  await until('the agent answers', 60_000, async () => (await agent.get('/pods').catch(() => undefined))?.status === 200);
  agent.drop('web.yaml', manifest(pod('web')));
  agent.drop(
    'two.yaml',
    manifest(
      pod('two', {
        containers: [container('a'), container('b', undefined, { env: [{ name: 'WHO', value: 'b' }] })],
        shareProcessNamespace: true,
      }),
    ),
  );
  agent.drop('crash.yaml', manifest(pod('crash', { containers: [container('main', ['sh', '-c', 'exit 1'])] })));
  await Promise.all([runs('web'), runs('two')]);
});
after(async () => {
  await agent?.remove();
  await bed?.stop();
});

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}
interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  out(): string;
}
function start(file: string, args: readonly string[], input?: string): Running {
  const child = spawn(file, args, { env: env(), stdio: ['pipe', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  child.stdout.on('data', (d: Buffer) => {
    out += d.toString();
  });
  child.stderr.on('data', (d: Buffer) => {
    err += d.toString();
  });
  child.stdin.on('error', () => {}); // it ended before it read all
  if (input !== undefined) child.stdin.end(input);
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, out, err }) as Ended);
  return { child, ended, out: () => out };
}
const podsched = (args: readonly string[], input = ''): Promise<Ended> => start(command, args, input).ended;
/** In a terminal of its own, as a person sits at it. `line` is for a shell. */
const inTerminal = (line: string): Running => start('script', ['-qefc', line, '/dev/null']);

describe('exec on a real containerd', { concurrency: 3 }, () => {
  test('outputs come apart, the exit code is that of the command, arguments arrive as they were', async () => {
    const script = 'for a in "$@"; do echo "<$a>"; done; echo err >&2; exit 9';
    const { code, out, err } = await podsched(['exec', 'web', '--', 'sh', '-c', script, 'x', 'a b', '', '$HOME', "it's"]);
    assert.deepEqual([code, out, err], [9, "<a b>\n<>\n<$HOME>\n<it's>\n", 'err\ncommand terminated with exit code 9\n']);
  });

  test('a pipe goes in and ends: echo x | podsched exec -i web -- cat', async () => {
    assert.deepEqual(await podsched(['exec', '-i', 'web', '--', 'cat'], 'x\n'), { code: 0, signal: null, out: 'x\n', err: '' });
    const big = 'y'.repeat(5_000_000);
    assert.equal((await podsched(['exec', '-i', 'web', '--', 'cat'], big)).out, big);
    // an input that stays open keeps nobody
    const open = start(command, ['exec', '-i', 'web', '--', 'true']);
    assert.equal((await open.ended).code, 0);
  });

  test('five megabytes come out whole into a slow pipe', async () => {
    const { ended } = start('sh', ['-c', `${command} exec web -- head -c 5000000 /dev/zero | (sleep 2; wc -c)`], '');
    assert.equal((await ended).out.trim(), '5000000');
  });

  test('a mistake has its code: nobody, no such container, one that does not run, no such command', async () => {
    // of a rest of at least 20 s so much is left that a command is done before it ends
    const rests = async (): Promise<boolean> => {
      const c = (await podOf('crash'))?.status.containerStatuses?.[0];
      if (c?.state.waiting?.reason !== 'CrashLoopBackOff' || c.restartCount < 2) return false;
      const ends = Date.parse(c.lastState.terminated?.finishedAt ?? '') + 10_000 * 2 ** (c.restartCount - 1);
      return ends - Date.now() > 10_000;
    };
    await until('it rests for a while', 120_000, rests);
    for (const [args, code, message] of [
      [['crash', '--', 'ls'], 3, /container not found \("main"\)/],
      [['wab', '--', 'ls'], 3, /pod "wab" not found in namespace "default"; did you mean "web"\?/],
      [['web', '-c', 'x', '--', 'ls'], 3, /container x is not valid for pod web/],
      [['web', '--', '/nowhere'], 1, /nowhere/],
    ] as const) {
      const got = await podsched(['exec', ...args]);
      assert.equal(got.code, code, got.err);
      assert.match(got.err, message);
    }
  });

  test('of two containers the first is meant, and it is said', async () => {
    const first = await podsched(['exec', 'two', '--', 'sh', '-c', 'echo "$WHO"']);
    assert.deepEqual([first.out, first.err], ['\n', 'Defaulted container "a" out of: a, b\n']);
    assert.equal((await podsched(['exec', 'two', '-c', 'b', '--', 'sh', '-c', 'echo "$WHO"'])).out, 'b\n');
  });

  test('without a terminal -it says so and goes on', async () => {
    const { code, out, err } = await podsched(['exec', '-it', 'web', '--', 'cat'], 'typed\n');
    assert.deepEqual([code, out], [0, 'typed\n']);
    assert.match(err, /^Unable to use a TTY - input is not a terminal/);
  });

  test('exec -it is a real terminal: keys, size, its changes, the exit code', async () => {
    const size = join(agent.dir, 'tty');
    const { child, ended, out } = inTerminal(
      `stty rows 33 cols 111; tty >${size}; ${command} exec -it web -- sh; echo "left with $?"; stty -a`,
    );
    await until('the prompt', 60_000, () => out().includes('# '));
    child.stdin?.write('stty size; tty\r');
    await until('the size', 45_000, () => /33 111\r\n\/dev\/pts/.test(out()));
    await podsched(['version']);
    const resized = spawn('stty', ['-F', readFileSync(size, 'utf8').trim(), 'rows', '20', 'cols', '70']);
    await once(resized, 'close');
    // nobody says when it has come there: it is asked until it has
    const asksAgain = () => {
      if (/20 70\r\n/.test(out())) return true;
      child.stdin?.write('stty size\r');
      return false;
    };
    await until('the new size', 45_000, asksAgain, 500);
    // Ctrl-C goes to the program over there, not to us
    child.stdin?.write("echo be''gins; sleep 1000\r");
    await until('it sleeps', 45_000, () => out().includes('begins\r\n'));
    await sleep(500);
    child.stdin?.write('\x03');
    const upTo = out().length;
    await until('the prompt again', 45_000, () => out().slice(upTo).includes('# '));
    child.stdin?.write('echo alive; exit 6\r');
    const { out: all } = await ended;
    assert.match(all, /alive\r\n/);
    assert.match(all, /command terminated with exit code 6\r\nleft with 6\r\n/);
    assert.match(all, /[^-]icanon/);
    assert.match(all, /[^-]echo\b/);
  });

  test('the terminal is as it was also when podsched is ended by a signal', async () => {
    for (const signal of ['TERM', 'HUP']) {
      const { child, ended, out } = inTerminal(
        `sh -c 'echo $$ >${agent.dir}/pid; exec ${command} exec -it web -- sh'; echo "left with $?"; stty -a`,
      );
      await until('the prompt', 60_000, () => out().includes('# '));
      process.kill(Number(readFileSync(join(agent.dir, 'pid'), 'utf8')), `SIG${signal}`);
      const { out: all } = await ended;
      assert.match(all, /left with 1(43|29)\r\n/);
      assert.match(all, /[^-]icanon/);
      assert.match(all, /[^-]echo\b/);
      child.stdin?.end();
    }
  });

  test('WebSocket with v4.channel.k8s.io goes through the agent too', async () => {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-protocol': 'v4.channel.k8s.io',
    };
    const asked = request({ socketPath: agent.socket, path: '/exec/default/web/main?command=echo&command=hello', headers, agent: false });
    asked.end();
    const [response, socket, head] = (await once(asked, 'upgrade')) as [{ headers: Record<string, string> }, Socket, Buffer];
    assert.equal(response.headers['sec-websocket-protocol'], 'v4.channel.k8s.io');
    let bytes = head;
    socket.on('data', (d: Buffer) => {
      bytes = Buffer.concat([bytes, d]);
    });
    await once(socket, 'close');
    const said = bytes.toString('latin1');
    assert.ok(said.includes('\x01hello\n'));
    assert.match(said.slice(said.indexOf('\x03')), /^.\{.*"status":"Success"/);
  });

  test('what is open when the agent stops ends, and holds it up by nothing', async () => {
    const other = await startAgent(bed, { nodeName: 'exec-stops', config: { runDir: join(agent.dir, 'other') } });
    mkdirSync(join(agent.dir, 'other'), { recursive: true });
    try {
      other.drop('held.yaml', manifest(pod('held')));
      const run = (args: readonly string[]) => other.cli(...args);
      await until('held runs', 90_000, async () => (await run(['exec', 'held', '--', 'true'])).code === 0);
      const session = run(['exec', 'held', '--', 'sleep', '1000']);
      await until('it sleeps', 60_000, async () => (await run(['exec', 'held', '--', 'ps'])).stdout.includes('sleep 1000'));
      // what holds it up for ten seconds is cut, and then its exit code says so
      assert.equal(await other.stop(), 0);
      assert.equal((await session).code, 1);
    } finally {
      await other.remove();
    }
  });
});

describe('debug on a real containerd', () => {
  test('a container is added beside the others, told, and survives the agent; it starts once', async () => {
    const image = ['--image', 'localhost/busybox:2', '-c', 'look'];
    const before = await podOf('web');
    const { code, err } = await podsched(['debug', 'web', ...image, '--env', 'A=b', '--', 'sh', '-c', 'echo "$A"; exec sleep 1000']);
    assert.deepEqual([code, err], [0, '']);
    const status = async () => (await podOf('web'))?.status.ephemeralContainerStatuses?.[0];
    await until('it runs', 60_000, async () => (await status())?.state.running !== undefined);
    const id = (await status())?.containerID;
    assert.deepEqual(
      (await podOf('web'))?.spec.ephemeralContainers?.map((c) => [c.name, c.image]),
      [['look', 'localhost/busybox:2']],
    );
    // what it says comes into its log a moment later
    await until('it has spoken', 45_000, async () => (await podsched(['logs', 'web', '-c', 'look'])).out === 'b\n');
    assert.equal((await podsched(['exec', 'web', '-c', 'look', '--', 'true'])).code, 0);

    await agent.restart();
    await until('it is told again', 60_000, async () => (await status().catch(() => undefined))?.state.running !== undefined);
    assert.equal((await status())?.containerID, id);
    const app = (p: ToldPod | undefined) => p?.status.containerStatuses?.map((c) => [c.containerID, c.restartCount]);
    assert.deepEqual(app(await podOf('web')), app(before));

    assert.equal((await podsched(['exec', 'web', '-c', 'look', '--', 'kill', '1'])).code, 0);
    await podsched(['exec', 'web', '-c', 'look', '--', 'kill', '-9', '1']);
    await bed.ctr('task', 'kill', '-s', 'SIGKILL', id?.replace('containerd://', '') ?? '');
    await until('it has ended', 60_000, async () => (await status())?.state.terminated !== undefined);
    await sleep(1500);
    assert.equal((await status())?.containerID, id);
    assert.equal((await podOf('web'))?.status.phase, 'Running');
    assert.equal((await podsched(['debug', 'web', ...image])).code, 1);
  });

  test('debug -it is in the container’s own process, sees the target’s processes, and has its exit code', async () => {
    const { child, ended, out } = inTerminal(`${command} debug -it two --image localhost/busybox:1 --target b -- sh; echo "left with $?"`);
    await until('it is there', 60_000, () => /try pressing enter/.test(out()));
    child.stdin?.write('\r');
    await until('the prompt', 45_000, () => out().includes('# '));
    child.stdin?.write('ps; exit 5\r');
    const { out: all } = await ended;
    assert.match(all, /sleep 2147483647/);
    assert.match(all, /left with 5\r\n/);
  });

  test('a pipe into debug -i ends its container; why an image cannot be had is told', async () => {
    const { code, out } = await podsched(
      ['debug', '-i', 'two', '--image', 'localhost/busybox:1', '--', 'sh', '-c', 'sleep 1; wc -c'],
      '12345',
    );
    assert.deepEqual([code, out.trim()], [0, '5']);
    const absent = await podsched(['debug', '-i', 'two', '--image', 'localhost:1/nowhere:1', '-c', 'absent', '--', 'true']);
    assert.equal(absent.code, 1);
    assert.match(absent.err, /container absent cannot start: (ErrImagePull|ImagePullBackOff)/);
  });

  test('it is gone with its pod', async () => {
    agent.drop('short.yaml', manifest(pod('short')));
    await runs('short');
    assert.equal((await podsched(['debug', 'short', '--image', 'localhost/busybox:1', '--', 'sleep', '1000'])).code, 0);
    const stored = () => readdirSync(join(agent.stateDir, 'state')).filter((name) => name.startsWith('ephemeral'));
    const uid = (await podOf('short'))?.metadata.uid;
    assert.ok(uid);
    await until('it is stored', 45_000, () => stored().some((name) => name.includes(uid)));
    agent.removeManifest('short.yaml');
    await until('the pod is gone', 60_000, async () => (await podOf('short')) === undefined);
    await until('what was stored is gone', 45_000, () => !stored().some((name) => name.includes(uid)));
  });
});
