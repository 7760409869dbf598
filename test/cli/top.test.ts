/** `podsched top` as a person sees it, over a real socket. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../../src/cli/program.ts';
import type { StatsView } from '../../src/operations/stats.ts';
import type { SummaryPod } from '../../src/operations/statsSummary.ts';
import type { NodeUsage, PodUsage } from '../../src/operations/top.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { fakeConsole } from '../fakes/fakeConsole.ts';
import { agentView, told } from '../operations/view.ts';

const pod = (name: string, o: Partial<PodUsage> & { readonly namespace?: string } = {}): PodUsage => {
  const { namespace = 'default', ...more } = o;
  return {
    apiVersion: 'podsched.dev/v1',
    kind: 'PodUsage',
    metadata: { name, namespace, uid: `uid-${name}` },
    timestamp: '2026-01-01T00:00:01Z',
    window: '1.000s',
    usage: { cpu: '1500000n', memory: '3072Ki' },
    containers: [{ name: 'app', usage: { cpu: '1500000n', memory: '3072Ki' } }],
    ...more,
  };
};

const web = pod('web', {
  usage: { cpu: '251000001n', memory: '52000Ki' },
  limits: { cpu: '500m', memory: '65536Ki' },
  containers: [
    { name: 'app', usage: { cpu: '1000000n', memory: '48000Ki' }, limits: { cpu: '500m', memory: '65536Ki' } },
    { name: 'side', usage: { cpu: '250000001n', memory: '4000Ki' } },
  ],
});

const node: NodeUsage = {
  apiVersion: 'podsched.dev/v1',
  kind: 'NodeUsage',
  metadata: { name: 'pi-07' },
  timestamp: '2026-01-01T00:00:01Z',
  window: '1.000s',
  usage: { cpu: '380000000n', memory: '524288Ki' },
  allocatable: { cpu: '4000m', memory: '943718Ki' },
  temperatureCelsius: 48.31,
  disk: { usedBytes: 10 * 2 ** 30, capacityBytes: 30 * 2 ** 30, availableBytes: 20 * 2 ** 30 },
};

const stats = (pods: readonly PodUsage[] = [web, pod('cam', { namespace: 'kitchen' })], ofNode = node): StatsView => ({
  summary: async () => ({ node: { nodeName: 'pi-07' }, pods: [] }),
  topPods: async () => pods,
  topNode: async () => ofNode,
});

async function top(view: StatsView, args: readonly string[], onSleep: (times: number) => void = () => {}) {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-top-'));
  const pods = () => [told('web'), told('idle', { status: { phase: 'Pending' } })];
  const server = await startServer({
    socketPath: join(dir, 'podsched.sock'),
    agent: () => agentView({ pods, stats: view }),
    log: silentLog,
  });
  const said = { out: '', err: '' };
  let slept = 0;
  try {
    const code = await runCommand(['top', ...args], {
      print: {
        out: (text) => {
          said.out += text;
        },
        err: (text) => {
          said.err += text;
        },
        nowMs: () => 0,
        sleep: async () => onSleep(++slept),
      },
      env: { PODSCHED_RUN_DIR: dir },
      stdin: async () => new Uint8Array(),
      console: fakeConsole,
      bytes: { isTerminal: false, write: async () => {} },
    });
    return { ...said, code };
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

test('pods are told in the columns of kubectl: thousandths rounded up, mebibytes rounded down', async () => {
  const { code, out, err } = await top(stats(), ['pods']);
  assert.deepEqual([code, out, err], [0, 'NAME   CPU(cores)   MEMORY(bytes)\nweb    252m         50Mi\n', '']);
  const all = await top(stats(), ['pod', '-A']);
  assert.equal(
    all.out,
    'NAMESPACE   NAME   CPU(cores)   MEMORY(bytes)\ndefault     web    252m         50Mi\nkitchen     cam    2m           3Mi\n',
  );
});

test('wide has limits, and how near to them the memory is', async () => {
  const { out } = await top(stats(), ['pods', '-A', '-o', 'wide']);
  assert.match(out, /^NAMESPACE {3}NAME .*CPU LIMIT {3}MEMORY LIMIT {3}MEMORY%\n/);
  assert.match(out, /\ndefault +web +252m +50Mi +500m +64Mi +79%\n/);
  assert.match(out, /\nkitchen +cam +2m +3Mi +<none> +<none> +<none>\n/);
});

test('containers have rows of their own; JSON stays of pods', async () => {
  const { out } = await top(stats(), ['pods', '--containers']);
  assert.equal(out, 'POD   NAME   CPU(cores)   MEMORY(bytes)\nweb   app    1m           46Mi\nweb   side   251m         3Mi\n');
  const json = JSON.parse((await top(stats(), ['pods', '-A', '--containers', '-o', 'json'])).out);
  assert.deepEqual([json.kind, json.items.length], ['List', 2]);
  assert.equal(JSON.parse((await top(stats(), ['pods', 'web', '-o', 'json'])).out).kind, 'PodUsage');
  assert.equal((await top(stats(), ['pods', '-A', '-o', 'name'])).out, 'pod/web\npod/cam\n');
  assert.match((await top(stats(), ['pods', '-o', 'yaml'])).out, /cpu: "251000001n"/);
});

test('the greatest is the first where that is asked for', async () => {
  const small = pod('a', { usage: { cpu: '900000000n', memory: '1024Ki' } });
  const order = async (by: string) => (await top(stats([small, web]), ['pods', '--sort-by', by, '-o', 'name'])).out;
  assert.equal(await order('cpu'), 'pod/a\npod/web\n');
  assert.equal(await order('memory'), 'pod/web\npod/a\n');
  const { out } = await top(stats([web]), ['pods', '--sort-by', 'cpu', '--containers']);
  assert.match(out, /side.*\n.*app/);
  assert.equal((await top(stats(), ['pods', '--sort-by', 'name'])).code, 2);
});

const probed = (name: string, namespace: string, containers: SummaryPod['containers']): SummaryPod => ({
  podRef: { name, namespace, uid: `uid-${name}` },
  containers,
});
const withProbes: StatsView = {
  ...stats(),
  summary: async (only) => ({
    node: { nodeName: 'pi-07' },
    pods:
      only === 'all'
        ? []
        : [
            probed('web', 'default', [
              { name: 'app', probes: [{ probe: 'readiness', handler: 'httpGet', count: 40, totalMs: 60, meanMs: 1.5, perMinuteMs: 9 }] },
              { name: 'side', probes: [{ probe: 'liveness', handler: 'exec', count: 3, totalMs: 900, meanMs: 300, perMinuteMs: 1800.4 }] },
              { name: 'bare' },
            ]),
            probed('cam', 'kitchen', [
              { name: 'app', probes: [{ probe: 'startup', handler: 'exec', count: 1, totalMs: 250, meanMs: 250, perMinuteMs: 1500 }] },
            ]),
          ],
  }),
};

test('what probes cost has a row for each, the costliest first, and looks at no disk', async () => {
  const { code, out, err } = await top(withProbes, ['pods', '--probes']);
  const head = 'POD   CONTAINER   PROBE       HANDLER   COUNT   MEAN    PER MINUTE\n';
  const rows =
    'web   side        liveness    exec      3       300ms   1800ms\nweb   app         readiness   httpGet   40      1.5ms   9ms\n';
  assert.deepEqual([code, out, err], [0, head + rows, '']);
  const all = (await top(withProbes, ['pods', '-A', '--probes'])).out;
  assert.match(all, /^NAMESPACE +POD .*\ndefault +web +side .*\nkitchen +cam +app +startup +exec +1 +250ms +1500ms\ndefault +web +app /);
  const [first] = JSON.parse((await top(withProbes, ['pods', 'web', '--probes', '-o', 'json'])).out).items;
  assert.deepEqual(first, {
    ...{ apiVersion: 'podsched.dev/v1', kind: 'ProbeUsage', metadata: { name: 'web', namespace: 'default', uid: 'uid-web' } },
    ...{ container: 'side', probe: 'liveness', handler: 'exec', count: 3, totalMs: 900, meanMs: 300, perMinuteMs: 1800.4 },
  });
});

test('probes of a pod that is not there or does not run, probes that nobody has asked, and another order', async () => {
  assert.equal((await top(withProbes, ['pods', 'nobody', '--probes'])).code, 3);
  assert.match((await top(withProbes, ['pods', 'idle', '--probes'])).err, /nothing of pod "idle" runs/);
  const none = await top(stats(), ['pods', '--probes']);
  assert.deepEqual([none.code, none.out, none.err], [0, '', 'No probe has been asked yet in namespace default.\n']);
  assert.equal((await top(withProbes, ['pods', '--probes', '--sort-by', 'cpu'])).code, 2);
});

test('a pod that is not there, and one of which nothing runs', async () => {
  const missing = await top(stats(), ['pods', 'nobody']);
  assert.deepEqual([missing.code, missing.err], [3, 'podsched: pod "nobody" not found in namespace "default"\n']);
  const idle = await top(stats(), ['pods', 'pod/idle']);
  assert.equal(idle.code, 1);
  assert.match(idle.err, /nothing of pod "idle" runs \(Pending\).*podsched why idle/);
  const none = await top(stats([]), ['pods']);
  assert.deepEqual([none.code, none.out, none.err], [0, '', 'No running pods found in namespace default.\n']);
});

test('what could not be read is not told as 0', async () => {
  const fresh = pod('new', { usage: {}, limits: { memory: '65536Ki' }, containers: [] });
  assert.match((await top(stats([fresh]), ['pods', '-o', 'wide'])).out, /\nnew +<unknown> +<unknown> +<none> +64Mi +<unknown>\n/);
});

test('the node is told in parts of what pods may use; wide adds its board', async () => {
  assert.equal(
    (await top(stats(), ['node'])).out,
    'NAME    CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%\npi-07   380m         9%     512Mi           55%\n',
  );
  const wide = (await top(stats(), ['nodes', '-o', 'wide'])).out;
  assert.match(wide, /TEMPERATURE {3}DISK {14}DISK% {3}SWAP\n/);
  assert.match(wide, /48\.3C +10240Mi\/30720Mi +33% +<none>\n$/);
  const swap = { usedBytes: 10 * 2 ** 20, totalBytes: 200 * 2 ** 20 };
  const { temperatureCelsius: _, disk: __, ...bare } = node;
  assert.match((await top(stats([], { ...bare, swap }), ['node', '-o', 'wide'])).out, /<none> +<unknown> +<unknown> +10Mi\/200Mi\n$/);
  assert.equal(JSON.parse((await top(stats(), ['node', '-o', 'json'])).out).kind, 'NodeUsage');
  assert.equal((await top(stats(), ['node', '-o', 'name'])).out, 'node/pi-07\n');
  assert.equal((await top(stats(), ['node', 'node/pi-07', '-o', 'name'])).code, 0);
  const other = await top(stats(), ['node', 'pi-08']);
  assert.deepEqual([other.code, other.err], [3, 'podsched: node "pi-08" is not this one, which is pi-07\n']);
});

test('watch prints it again, until it is ended', async () => {
  const ended = new Error('ended');
  const { out, code } = await top(stats(), ['node', '-w'], (times) => {
    if (times === 3) throw ended;
  });
  assert.equal(out.split('pi-07').length - 1, 3);
  assert.equal(code, 1);
});

test('names cannot steer a terminal', async () => {
  const { out } = await top(stats([pod('web', { containers: [{ name: 'a\u001b[2J', usage: {} }] })]), ['pods', '--containers']);
  assert.ok(!out.includes('\u001b'));
});

test('a runtime that does not answer is one line and exit code 1', async () => {
  const { code, err } = await top({ ...stats(), topPods: () => Promise.reject(new Error('connect ENOENT')) }, ['pods']);
  assert.deepEqual([code, err], [1, 'podsched: the runtime does not answer: connect ENOENT\n']);
});
