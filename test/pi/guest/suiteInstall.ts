/** The package on a bare machine: apt installs it, systemd starts it, and a pod runs without any registry; then its next version. */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import {
  answers,
  conditions,
  configure,
  container,
  drop,
  isReady,
  mainPid,
  node,
  plain,
  pod,
  podsched,
  remove,
  takeAway,
  untilReady,
} from './agent.ts';
import { startBroker } from './broker.ts';
import type { Suite } from './checks.ts';
import { memTotal, ran, read, run, sh, unit, until } from './machine.ts';

const debs = '/mnt/host/deb';
const packageFile = (next: boolean): string =>
  readdirSync(debs).find((name) => name.endsWith('.deb') && name.includes('+next') === next) ?? '';

async function apt(file: string): Promise<string> {
  copyFileSync(`${debs}/${file}`, `/tmp/${file}`);
  const { code, out, err } = await ran('apt-get', ['install', '-y', '--no-install-recommends', `/tmp/${file}`], {
    seconds: 300,
    env: { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
  });
  assert.equal(code, 0, `${out}\n${err}`);
  return out;
}

const units: Readonly<Record<string, number>> = { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };
/** An amount as a node tells it: `2018936Ki`. */
function bytesOf(amount = ''): number {
  const [, digits, word] = /^(\d+)([KMG]i)?$/.exec(amount) ?? [];
  return Number(digits) * (units[word ?? ''] ?? Number.NaN);
}

/** As the API server of a cluster would have it, beside what the machine says of itself. */
async function tellsTheMachine(): Promise<void> {
  const { metadata, status } = await node();
  assert.equal(status.capacity?.cpu, '2');
  assert.equal(bytesOf(status.capacity.memory), memTotal());
  assert.ok(bytesOf(status.allocatable?.memory) < memTotal(), 'some of the memory is not for pods');
  assert.equal(metadata.annotations?.['podsched.dev/page-size'], (await run('getconf', 'PAGESIZE')).trim());
  const { architecture, kernelVersion, containerRuntimeVersion = '' } = status.nodeInfo;
  assert.deepEqual([architecture, kernelVersion], ['arm64', (await run('uname', '-r')).trim()]);
  assert.match(containerRuntimeVersion, /^containerd:\/\/\d/);

  const told = (type: string): string[] => status.addresses.filter((a) => a.type === type).map((a) => a.address);
  const [ip = ''] = told('InternalIP');
  const own = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).filter((a) => !a.internal).map((a) => a.address));
  assert.match(ip, /^\d+\.\d+\.\d+\.\d+$/);
  assert.ok(own.includes(ip), `${ip} is none of ${own.join(', ')}`);
  assert.deepEqual(told('Hostname'), [metadata.name]);

  const expected = { MemoryPressure: 'False', DiskPressure: 'False', PIDPressure: 'False', Ready: 'True' };
  const ofKubelets = status.conditions.filter((c) => c.type in expected);
  assert.deepEqual(Object.fromEntries(ofKubelets.map((c) => [c.type, c.status])), expected);
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
  for (const c of ofKubelets) {
    assert.match(c.lastTransitionTime ?? '', time, c.type);
    assert.match(c.lastHeartbeatTime ?? '', time, c.type);
  }

  for (const name of ['localhost/busybox:1', 'podsched.dev/pause:1']) {
    const image = status.images?.find((i) => i.names.includes(name));
    assert.ok((image?.sizeBytes ?? 0) > 0, `${name} is not among ${JSON.stringify(status.images)}`);
  }
}

export const install: Suite = {
  name: 'install',
  async run({ check, figure }) {
    const pretty = /^PRETTY_NAME="(.*)"$/m.exec(read('/etc/os-release'))?.[1];
    figure(
      'machine',
      `${pretty}, ${(await run('uname', '-rm')).trim()}, node ${process.versions.node}, ${(await run('containerd', '--version')).trim()}`,
    );
    let said = '';
    const installed = await check(
      'apt installs the package, asking nothing',
      async () => {
        said = await apt(packageFile(false));
      },
      300,
    );
    if (!installed) return;
    await check('systemd runs the agent, and will at the next boot', async () => {
      assert.equal(await unit('podsched.service', 'ActiveState'), 'active');
      assert.equal((await run('systemctl', 'is-enabled', 'podsched')).trim(), 'enabled');
      await answers();
    });
    await check('the group may use the commands, and nobody else reads the state', () => {
      const group = Number(/^podsched:[^:]*:(\d+)/m.exec(read('/etc/group'))?.[1]);
      assert.equal(statSync('/run/podsched').gid, group);
      assert.equal(statSync('/run/podsched').mode & 0o777, 0o750);
      assert.equal(statSync('/var/lib/podsched').mode & 0o777, 0o700);
    });
    await check('a node without a pod network got one, and was told so', () => {
      assert.deepEqual(readdirSync('/etc/cni/net.d'), ['10-podsched.conflist']);
      assert.match(said, /10-podsched\.conflist is the pod network/);
    });
    await check('containerd makes sandboxes of the image that podsched brings', async () => {
      assert.match(read('/etc/containerd/config.toml'), /sandbox_image = "podsched\.dev\/pause:1"/);
      await until(
        'the image to be imported',
        120,
        async () => (await sh('ctr -n k8s.io images ls -q')).includes('podsched.dev/pause:1') || undefined,
      );
    });
    await check('the embedded broker tells that the node is online', async () => {
      const heard = await run('mosquitto_sub', '-p', '1883', '-t', 'podsched/v1/nodes/+/online', '-C', '1', '-W', '60');
      assert.equal((JSON.parse(heard) as { state: string }).state, 'online');
    });
    // beside the pod's start, which leaves a processor idle; each is judged at its place
    const broker = startBroker();
    const doctor = broker.catch(() => {}).then(() => ran('/usr/bin/podsched', ['doctor'], { seconds: 240 }));
    await check('an image comes from a file, and a pod runs of it', async () => {
      const imported = await podsched('images', 'import', '/mnt/host/busybox1.tar');
      assert.equal(imported.code, 0, imported.err);
      drop('hello', { containers: [container()] });
      await untilReady('hello');
    });
    takeAway('hello');
    await check('containerd has not crashed over any of it', async () => {
      assert.equal(await unit('containerd.service', 'NRestarts'), '0');
    });
    await check('nothing that the agent says of the node is a complaint', async () => {
      // no time server is here to be asked
      const usual = ['Ready', 'ClockUnsynced'];
      const bad = (await conditions()).filter((c) => !usual.includes(c.type) && c.status === 'True');
      assert.deepEqual(bad, []);
    });
    await check('the node tells what the machine is, that it is ready, and which images it has', tellsTheMachine);
    await check('doctor finds nothing wrong', async () => {
      const { code, out, err } = await doctor;
      assert.equal(code, 0, `${out}\n${err}`);
    });
    await check('a broker of the node’s own takes the place of the embedded one', async () => {
      await broker;
      await remove('hello');
      await configure();
    });
  },
};

export const upgrade: Suite = {
  name: 'upgrade',
  async run({ check }) {
    drop('kept', { ...plain, containers: [container()] });
    const before = await untilReady('kept');
    const pid = await mainPid();
    const config = read('/etc/podsched/podsched.yaml');
    await check(
      'apt installs the next version, and restarts the agent only',
      async () => {
        await apt(packageFile(true));
        await answers();
        assert.notEqual(await mainPid(), pid);
        const after = await until('the pod to be told', 60, async () => {
          const p = await pod('kept');
          return p !== undefined && isReady(p) ? p : undefined;
        });
        assert.deepEqual(after.status.containerStatuses, before.status.containerStatuses);
        assert.equal(after.metadata.uid, before.metadata.uid);
      },
      300,
    );
    await check('what its owner wrote into podsched.yaml is still there', () => {
      assert.equal(read('/etc/podsched/podsched.yaml'), config);
      assert.ok(!existsSync('/etc/podsched/podsched.yaml.dpkg-dist'));
    });
    takeAway('kept');
  },
};
