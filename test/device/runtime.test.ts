/**
 * The runtime may be away: the real bundle on a real containerd that is absent, stale, restarted, killed or deaf, a manifest folder that
 * comes and goes, and the local socket. A socket without permission is not tried: the tests run as root, whom no mode keeps out.
 */
import assert from 'node:assert/strict';
import { linkSync, mkdirSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Agent, type AgentOptions, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { type CriProxy, isEventStream, startCriProxy, type Verdict } from './criProxy.ts';
import { type Mosquitto, startMosquitto } from './mosquitto.ts';
import { killPid, sleep, until } from './process.ts';
import type { RawContainerStatus } from './rawCri.ts';
import { assertContract, condition, isRunning, told } from './told.ts';
import { type Watcher, watchTopics } from './watcher.ts';

let bed: Bed;
let broker: Mosquitto;
before(async () => {
  [bed, broker] = await Promise.all([startBed({ name: 'runtime' }), startMosquitto()]);
});
after(async () => {
  await Promise.allSettled([broker.stop(), bed.stop()]);
});

const sleeper = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, annotations: { 'podsched.dev/crash-backoff': '1s,1s' } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'localhost/busybox:1', command: ['sleep', '2147483647'] }],
    },
  });

interface Stage {
  readonly agent: Agent;
  readonly watcher: Watcher;
  readonly pod: (name: string) => string;
  readonly sync: (name: string) => string;
  readonly runs: (name: string, timeoutMs?: number) => Promise<unknown>;
}

/** An agent with a reader of its own; what it told is held against the contract at the end, and its pods are taken away. */
async function onStage(
  nodeName: string,
  o: AgentOptions & { readonly endpoint?: string },
  act: (s: Stage) => Promise<void>,
): Promise<void> {
  const watcher = await watchTopics(broker.url);
  const agent = await startAgent(
    { endpoint: o.endpoint ?? bed.endpoint },
    { servers: [broker.url], nodeName, ...o, config: { fileCheckFrequency: '1s', ...o.config } },
  );
  const pod = (name: string) => agent.topic(`pods/default/${name}`);
  const sync = (name: string) => agent.topic(`sync/default/${name}`);
  try {
    await act({ agent, watcher, pod, sync, runs: (name, ms = 60_000) => watcher.until(pod(name), isRunning, ms) });
    assertContract(watcher.heard, nodeName);
  } catch (e) {
    throw new Error(`${e instanceof Error ? e.message : String(e)}\nthe agent's last words:\n${agent.log().slice(-4000)}`, { cause: e });
  } finally {
    await agent.remove();
    await watcher.end();
    await removePods(nodeName).catch((e) => console.error(`pods of ${nodeName} are left: ${e}`));
  }
}

async function removePods(nodeName: string): Promise<void> {
  if (!(await bed.cri.ready().catch(() => false))) {
    rmSync(bed.socket, { force: true, recursive: true });
    await bed.startContainerd();
  }
  const mine = (await bed.cri.sandboxes()).filter((s) => s.labels['podsched.dev/managed'] === nodeName);
  await Promise.all(mine.map((s) => bed.cri.stopSandbox(s.id).then(() => bed.cri.removeSandbox(s.id))));
}

/** By the second opinion: the running containers of a pod of this node. */
async function containersOf(nodeName: string, pod: string): Promise<RawContainerStatus[]> {
  const all = await bed.cri.containers();
  const mine = all.filter((c) => c.labels['podsched.dev/managed'] === nodeName && c.labels['io.kubernetes.pod.name'] === pod);
  return await Promise.all(mine.filter((c) => c.state === 'running').map((c) => bed.cri.containerStatus(c.id)));
}

const identity = (containers: readonly RawContainerStatus[]): string[] => containers.map((c) => `${c.id} ${c.startedAt}`).sort();

const putBeforeStart: Readonly<Record<string, { readonly put: () => Promise<void>; readonly clear: () => void }>> = {
  'its socket is absent': { put: async () => rmSync(bed.socket, { force: true }), clear: () => {} },
  'its socket file is stale': {
    put: async () => {
      rmSync(bed.socket, { force: true });
      const server = createServer();
      const made = join(bed.dir, 'made.sock');
      await new Promise<void>((resolve) => server.listen(made, resolve));
      linkSync(made, bed.socket); // the name stays when its listener goes
      await new Promise((resolve) => server.close(resolve));
      assert.ok(statSync(bed.socket).isSocket());
    },
    clear: () => {},
  },
  'a folder stands where its socket should be': {
    put: async () => {
      rmSync(bed.socket, { force: true });
      mkdirSync(bed.socket);
    },
    clear: () => rmdirSync(bed.socket),
  },
};

for (const [i, [how, { put, clear }]] of Object.entries(putBeforeStart).entries()) {
  test(`containerd is away at the start (${how}): manifests are accepted, it is told, and the pods start when it comes`, async () => {
    await bed.stopContainerd();
    await put();
    await onStage(`absent-${i}`, {}, async ({ agent, watcher, sync, runs }) => {
      agent.drop('a.yaml', sleeper('early'));
      const said = told(await watcher.until(sync('early'), (v) => told(v).reason === 'RuntimeDown'));
      assert.equal(said.phase, 'Waiting');
      assert.notEqual(said.message, '');
      await watcher.until(agent.topic('info'), (v) => condition(v, 'RuntimeDown')?.status === 'True');
      const { status, body } = await agent.get('/healthz');
      assert.equal(status, 503);
      assert.match(body, /\[-\]runtime failed/);
      agent.drop('b.yaml', sleeper('later'));
      await watcher.until(sync('later'), (v) => told(v).reason === 'RuntimeDown');
      const { pid } = agent;
      clear();
      await bed.startContainerd();
      const came = performance.now();
      await Promise.all([runs('early'), runs('later')]);
      console.log(`  ${how}: two pods told Running ${Math.round(performance.now() - came)} ms after containerd served`);
      await watcher.until(agent.topic('info'), (v) => condition(v, 'RuntimeDown') === undefined);
      await watcher.until(sync('early'), (v) => told(v).reason === 'Ready');
      await until('it is healthy', 45_000, async () => (await agent.get('/healthz')).status === 200);
      assert.ok(agent.running() && agent.pid === pid, 'the agent was not restarted');
    });
  });
}

test('containerd is restarted again and again: no container is touched, and what was wished meanwhile happens', async () => {
  await onStage('restarts', {}, async ({ agent, watcher, pod, sync, runs }) => {
    const { pid } = agent;
    for (const name of ['one', 'two']) agent.drop(`${name}.yaml`, sleeper(name));
    const [one, two] = [told(await runs('one')), told(await runs('two'))];
    const before = [...identity(await containersOf('restarts', 'one')), ...identity(await containersOf('restarts', 'two'))];
    const heardFrom = watcher.heard.length;
    for (const [round, how] of (['SIGKILL', 'SIGTERM', 'SIGKILL', 'SIGTERM'] as const).entries()) {
      const extra = `extra-${round}`;
      agent.drop('gone.yaml', sleeper(`gone-${round}`));
      await runs(`gone-${round}`);
      const [ended] = await containersOf('restarts', `gone-${round}`);
      await bed.stopContainerd(how);
      await watcher.until(agent.topic('info'), (v) => condition(v, 'RuntimeDown')?.status === 'True');
      // a flapping topic is told every 5 s only
      if (round === 0) await watcher.until(sync('one'), (v) => told(v).reason === 'RuntimeDown' && told(v).phase === 'Running');
      agent.removeManifest('gone.yaml');
      agent.drop(`${extra}.yaml`, sleeper(extra));
      await watcher.until(sync(extra), (v) => told(v).reason === 'RuntimeDown');
      assert.ok(told(watcher.values.get(pod(`gone-${round}`))).metadata, 'what cannot be ended yet is still told');
      await bed.startContainerd();
      const came = performance.now();
      await runs(extra);
      const started = performance.now() - came;
      await watcher.until(pod(`gone-${round}`), (v) => v === undefined);
      assert.ok(!(await bed.cri.containers()).some((c) => c.id === ended?.id && c.state === 'running'));
      await watcher.until(agent.topic('info'), (v) => condition(v, 'RuntimeDown') === undefined);
      console.log(`  round ${round} (${how}): a pod wished meanwhile is told Running ${Math.round(started)} ms after containerd served`);
      agent.removeManifest(`${extra}.yaml`);
      await watcher.until(pod(extra), (v) => v === undefined);
    }
    await watcher.until(sync('one'), (v) => told(v).reason === 'Ready');
    assert.deepEqual([...identity(await containersOf('restarts', 'one')), ...identity(await containersOf('restarts', 'two'))], before);
    assert.ok(agent.running() && agent.pid === pid, 'the agent was not restarted');
    const said = watcher.heard.slice(heardFrom).filter((m) => [pod('one'), pod('two')].includes(m.topic));
    for (const { text } of said) assert.ok(isRunning(JSON.parse(text)), `never told as anything but Running: ${text}`);
    for (const [name, was] of Object.entries({ one, two }))
      assert.deepEqual(told(watcher.values.get(pod(name))).status, was.status, 'told conditions and their times are unchanged');
  });
});

test('a container is edited while containerd is down: replaced when it is back, the other pod untouched', async () => {
  await onStage('edits', {}, async ({ agent, watcher, pod, runs }) => {
    agent.drop('still.yaml', sleeper('still'));
    agent.drop('edited.yaml', sleeper('edited'));
    await Promise.all([runs('still'), runs('edited')]);
    const before = identity(await containersOf('edits', 'still'));
    await bed.stopContainerd('SIGKILL');
    agent.drop('edited.yaml', sleeper('edited').replace('busybox:1', 'busybox:2'));
    await sleep(500);
    await bed.startContainerd();
    await watcher.until(pod('edited'), (v) => isRunning(v) && told(v).status?.containerStatuses?.[0]?.restartCount === 1);
    assert.deepEqual(identity(await containersOf('edits', 'still')), before);
    assert.deepEqual(
      (await containersOf('edits', 'edited')).map((c) => c.image),
      ['localhost/busybox:2'],
    );
  });
});

test('containerd is down, the agent is killed and started, a container dies and a manifest goes: all is as wished when containerd is back', async () => {
  await onStage('both', {}, async ({ agent, watcher, pod, sync, runs }) => {
    for (const name of ['still', 'dies', 'goes']) agent.drop(`${name}.yaml`, sleeper(name));
    await Promise.all([runs('still'), runs('dies'), runs('goes')]);
    const before = identity(await containersOf('both', 'still'));
    const [dying] = await containersOf('both', 'dies');
    const status = told(watcher.values.get(pod('still'))).status;
    const tasks = await bed.ctr('tasks', 'ls');
    const pid = Number(new RegExp(`${dying?.id}\\s+(\\d+)`).exec(tasks)?.[1]);
    await bed.stopContainerd('SIGKILL');
    await agent.kill9();
    killPid(pid, 'SIGKILL');
    agent.removeManifest('goes.yaml');
    const heardFrom = watcher.heard.length;
    agent.start();
    await until('the new agent is online', 45_000, () => watcher.heard.slice(heardFrom).some((m) => m.topic === agent.topic('online')));
    await watcher.until(sync('still'), (v) => told(v).reason === 'RuntimeDown' && told(v).phase === 'Running');
    await watcher.until(sync('goes'), (v) => told(v).phase === 'Terminating');
    assert.ok(watcher.values.has(pod('goes')), 'what could not be ended is not told gone');
    await bed.startContainerd();
    await watcher.until(pod('dies'), (v) => isRunning(v) && told(v).status?.containerStatuses?.[0]?.restartCount === 1);
    await watcher.until(pod('goes'), (v) => v === undefined);
    await watcher.until(sync('still'), (v) => told(v).reason === 'Ready');
    assert.deepEqual(identity(await containersOf('both', 'still')), before);
    assert.deepEqual(told(watcher.values.get(pod('still'))).status, status, 'told conditions and their times are unchanged');
  });
});

test('the runtime takes connections and never answers: told with a deadline, and all goes on when it does', async () => {
  const proxy = await startCriProxy(join(bed.dir, 'proxy.sock'), bed.socket);
  try {
    proxy.judge = () => 'hold';
    await onStage('mute', { endpoint: proxy.endpoint, config: { runtimeRequestTimeout: '2s' } }, async ({ agent, watcher, sync, runs }) => {
      const isDown = () => watcher.until(agent.topic('info'), (v) => /no answer in 2 s/.test(condition(v, 'RuntimeDown')?.message ?? ''));
      agent.drop('a.yaml', sleeper('first'));
      await isDown();
      await watcher.until(sync('first'), (v) => told(v).reason === 'RuntimeDown');
      proxy.judge = () => 'pass';
      await runs('first');
      const before = identity(await containersOf('mute', 'first'));
      proxy.judge = () => 'hold';
      proxy.cutStreams();
      await isDown();
      agent.drop('b.yaml', sleeper('second'));
      await watcher.until(sync('second'), (v) => told(v).reason === 'RuntimeDown');
      proxy.judge = () => 'pass';
      await runs('second');
      await watcher.until(agent.topic('info'), (v) => condition(v, 'RuntimeDown') === undefined);
      assert.deepEqual(identity(await containersOf('mute', 'first')), before);
      assert.equal((await containersOf('mute', 'second')).length, 1);
    });
  } finally {
    await proxy.close();
  }
});

const eventsAre =
  (verdict: Verdict): CriProxy['judge'] =>
  ({ path }) =>
    isEventStream(path) ? verdict : 'pass';

test('the event stream is refused, not known, or open and deaf: a container that is killed is noticed all the same', async () => {
  const proxy = await startCriProxy(join(bed.dir, 'proxy.sock'), bed.socket);
  try {
    await onStage('lost', { endpoint: proxy.endpoint }, async ({ agent, watcher, pod, runs }) => {
      agent.drop('victim.yaml', sleeper('victim'));
      await runs('victim');
      /** Kills the container past the agent. `act`: what the agent has to do meanwhile. */
      const kill = async (events: string, act: () => void = () => {}) => {
        const [victim] = await containersOf('lost', 'victim');
        assert.ok(victim, 'the victim runs');
        await bed.ctr('tasks', 'kill', '-s', 'SIGKILL', victim.id);
        const at = performance.now();
        act();
        const started = async () => (await containersOf('lost', 'victim')).find((c) => c.id !== victim.id);
        await until('another container of it runs', 60_000, async () => (await started()) !== undefined, 50);
        // one second of it is the crash back-off, but at the first time
        console.log(`  events ${events}: another container runs ${Math.round(performance.now() - at)} ms after the kill`);
      };
      await kill('flow');
      proxy.judge = eventsAre('refuse');
      proxy.cutStreams();
      await kill('are refused');
      proxy.judge = eventsAre('pass');
      await sleep(2_000); // it is opened again
      await kill('flow again');
      proxy.judge = eventsAre('deaf');
      proxy.cutStreams();
      await sleep(2_000);
      // a deaf stream shows by the agent's own act, which does not come back as an event
      await kill('are swallowed', () => agent.drop('other.yaml', sleeper('other')));
      await runs('other');
      proxy.judge = eventsAre('unimplemented');
      proxy.cutStreams();
      await sleep(2_000);
      await kill('are not known to the runtime');
      await watcher.until(pod('victim'), (v) => isRunning(v) && told(v).status?.containerStatuses?.[0]?.restartCount === 5);
    });
  } finally {
    await proxy.close();
  }
});

test('calls for one pod hang: other pods start, are edited and end; when the runtime answers, the pod goes on', async () => {
  const proxy = await startCriProxy(join(bed.dir, 'proxy.sock'), bed.socket);
  try {
    await onStage('hung', { endpoint: proxy.endpoint }, async ({ agent, watcher, pod, runs }) => {
      agent.drop('inspected.yaml', sleeper('inspected'));
      await runs('inspected');
      const [inspected] = await containersOf('hung', 'inspected');
      assert.ok(inspected);
      // the sandbox of one pod cannot be made, and another one's container cannot be inspected
      proxy.judge = ({ path, request }) =>
        (path.endsWith('/RunPodSandbox') && request.includes('stuck')) ||
        (path.endsWith('/ContainerStatus') && request.includes(inspected.id))
          ? 'hold'
          : 'pass';
      agent.drop('stuck.yaml', sleeper('stuck'));
      await bed.ctr('tasks', 'kill', '-s', 'SIGKILL', inspected.id);
      await until('both calls hang', 45_000, () => proxy.held() >= 2);
      const at = performance.now();
      agent.drop('free.yaml', sleeper('free'));
      await runs('free');
      console.log(`  another pod is told Running ${Math.round(performance.now() - at)} ms after it was dropped`);
      agent.drop('free.yaml', sleeper('free').replace('busybox:1', 'busybox:2'));
      await watcher.until(pod('free'), (v) => isRunning(v) && told(v).status?.containerStatuses?.[0]?.restartCount === 1);
      agent.removeManifest('free.yaml');
      await watcher.until(pod('free'), (v) => v === undefined);
      proxy.judge = () => 'pass';
      proxy.release();
      await runs('stuck');
      await watcher.until(pod('inspected'), (v) => isRunning(v) && told(v).status?.containerStatuses?.[0]?.restartCount === 1);
      assert.equal((await containersOf('hung', 'stuck')).length, 1);
    });
  } finally {
    await proxy.close();
  }
});

test('no manifest folder at the start; it comes, is taken away, becomes a file, comes back: told, and no pod is touched for it', async () => {
  await onStage('folder', { started: false }, async ({ agent, watcher, pod, sync, runs }) => {
    const away = join(agent.dir, 'away');
    const faultTold = () => watcher.until(agent.topic('info'), (v) => condition(v, 'ManifestFolderUnreadable')?.status === 'True');
    const faultGone = () =>
      watcher.until(agent.topic('info'), (v) => v !== undefined && condition(v, 'ManifestFolderUnreadable') === undefined);
    const events = () => watcher.heard.filter((m) => m.topic.includes('/events/') && m.text.includes('SourceUnreadable'));
    renameSync(agent.manifests, away);
    agent.start();
    assert.match(condition(await faultTold(), 'ManifestFolderUnreadable')?.message ?? '', /does not exist/);
    await until('an event tells it', 45_000, () => events().length === 1);

    renameSync(away, agent.manifests);
    agent.drop('a.yaml', sleeper('kept'));
    await runs('kept');
    await faultGone();
    const before = identity(await containersOf('folder', 'kept'));
    const pidBefore = agent.pid;

    renameSync(agent.manifests, away);
    await faultTold();
    assert.ok(isRunning(watcher.values.get(pod('kept'))));
    writeFileSync(agent.manifests, 'a file');
    await watcher.until(agent.topic('info'), (v) => /is not a folder/.test(condition(v, 'ManifestFolderUnreadable')?.message ?? ''));
    const toldAgain = watcher.heard.length;
    await agent.restart();
    await until('the new agent tells it', 45_000, () =>
      watcher.heard.slice(toldAgain).some((m) => m.topic === agent.topic('info') && /is not a folder/.test(m.text)),
    );
    assert.notEqual(agent.pid, pidBefore);
    await watcher.until(sync('kept'), (v) => told(v).reason === 'Ready');
    assert.deepEqual(identity(await containersOf('folder', 'kept')), before);

    rmSync(agent.manifests);
    renameSync(away, agent.manifests);
    await faultGone();
    agent.drop('b.yaml', sleeper('added'));
    await runs('added');
    assert.deepEqual(identity(await containersOf('folder', 'kept')), before);
    assert.ok(!watcher.heard.some((m) => m.topic === pod('kept') && m.text === ''), 'it was never told gone');
    agent.removeManifest('a.yaml');
    await watcher.until(pod('kept'), (v) => v === undefined);
  });
});

test('the local API answers; a second agent on the same run folder ends with exit 1 and harms nothing; a stale socket is replaced', async () => {
  await onStage('local', {}, async ({ agent, watcher, runs }) => {
    agent.drop('seen.yaml', sleeper('seen'));
    agent.drop('bad.yaml', sleeper('bad').replace('"containers"', '"contaners"'));
    const pod = told(await runs('seen'));
    // what is told of it stands still then
    await watcher.until(agent.topic('sync/default/seen'), (v) => told(v).reason === 'Ready');
    const list = async (path: string): Promise<{ readonly kind: string; readonly items: readonly Record<string, unknown>[] }> => {
      const { status, body } = await agent.get(path);
      assert.equal(status, 200, `${path}: ${body}`);
      return JSON.parse(body);
    };
    assert.deepEqual(await agent.get('/healthz'), { status: 200, body: 'ok' });
    const pods = await list('/pods');
    assert.equal(pods.kind, 'PodList');
    assert.deepEqual(
      pods.items.map(told).map((p) => p.metadata?.uid),
      [pod.metadata?.uid],
    );
    const topic = told(watcher.values.get(agent.topic('pods/default/seen')));
    assert.deepEqual(told(pods.items[0]).status, topic.status, 'the socket says of a pod what MQTT says');
    const spec = (value: unknown) => JSON.stringify((value as { readonly spec?: unknown } | undefined)?.spec);
    assert.match(spec(pods.items[0]), /"command":\[/, 'and has it whole');
    assert.doesNotMatch(spec(topic), /"command":\[/);
    const sync = await list('/sync');
    assert.deepEqual(
      sync.items.map((s) => `${(s.object as { name: string }).name} ${s.phase}`),
      ['bad Refused', 'seen Running'],
    );
    const reasons = (await list('/events?name=seen')).items.map((e) => e.reason);
    for (const reason of ['Pulled', 'Created', 'Started']) assert.ok(reasons.includes(reason), `${reason} among ${reasons}`);
    assert.equal((await agent.get('/nothing')).status, 404);
    assert.equal(statSync(agent.socket).mode & 0o7777, 0o660);

    const second = await startAgent(bed, {
      servers: [broker.url],
      nodeName: 'local',
      config: { runDir: agent.runDir, stateDir: agent.stateDir },
    });
    try {
      assert.equal(await second.exited(), 1);
      assert.match(second.log(), /another podsched agent answers/);
    } finally {
      await second.remove();
    }
    assert.deepEqual(await agent.get('/healthz'), { status: 200, body: 'ok' });
    const states = watcher.heard.filter((m) => m.topic === agent.topic('online')).map((m) => told(JSON.parse(m.text)).state);
    assert.deepEqual([...new Set(states)], ['online'], 'the first was never thrown out');

    await agent.kill9();
    assert.ok(statSync(agent.socket).isSocket(), 'a killed agent leaves its socket behind');
    agent.start();
    await until('the new agent answers', 45_000, async () => (await agent.get('/healthz').catch(() => undefined))?.status === 200);
    await agent.stop();
    assert.throws(() => statSync(agent.socket), /ENOENT/, 'a stopped agent takes it away');
    agent.start();
    await runs('seen');
  });
});
