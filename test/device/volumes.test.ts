/** Volumes on a real containerd (field case K3 among them): what a container sees of them, what changes under it while it runs, and what is left when it is gone. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { container, first, House, mountsUnder, pod } from '../volumes/house.ts';
import { startBed } from './bed.ts';
import { until } from './process.ts';

const image = 'localhost/busybox:1';

test('a container has its volumes, its names and its servers, which follow the node in place; nothing is left of them but the node’s own', async () => {
  const bed = await startBed({ name: 'volumes' });
  const runtime = new CriRuntime({ endpoint: bed.endpoint, log: silentLog });
  const house = new House();
  const manager = house.newAgent({ clock: systemClock });
  try {
    const disk = join(house.dir, 'disk');
    mkdirSync(disk);
    writeFileSync(join(disk, 'f'), 'precious');
    const desired = pod({
      volumes: [
        { name: 'own' },
        { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
        { name: 'disk', hostPath: { path: disk } },
      ],
      hostAliases: [{ ip: '192.0.2.10', hostnames: ['nas'] }],
      securityContext: { fsGroup: 2000 },
      containers: [
        container('c', {
          volumeMounts: [
            { name: 'own', mountPath: '/own' },
            { name: 'own', mountPath: '/part', subPath: 'a/b' },
            { name: 'memory', mountPath: '/memory' },
            { name: 'disk', mountPath: '/disk', readOnly: true },
            { name: 'disk', mountPath: '/etc/app.conf', subPath: 'f' },
          ],
        }),
      ],
    });
    const sandbox = sandboxConfig('web', { logDirectory: `${bed.dir}/logs`, uid: desired.uid });
    const sandboxId = await runtime.runSandbox(sandbox, '');
    const ip = (await runtime.sandboxStatus(sandboxId)).network?.ip ?? '';
    await manager.setUp(desired);
    const start = async (attempt: number) => {
      const mounts = await manager.mounts(desired, first(desired), attempt, [ip]);
      const config = containerConfig(sandbox, 'c', { image, attempt, mounts, runAsUser: 1000, supplementalGroups: [2000] });
      const id = await runtime.createContainer(sandboxId, config, sandbox);
      await runtime.startContainer(id);
      const sh = async (script: string): Promise<string> => {
        const { stdout, stderr } = await runtime.execSync(id, ['/bin/sh', '-c', script], 30);
        return Buffer.concat([stdout, stderr]).toString('utf8').trim();
      };
      return { id, sh };
    };
    const { id, sh } = await start(0);

    assert.match(await sh('cat /etc/hosts'), new RegExp(`^${ip.replaceAll('.', '\\.')}\tweb$[\\s\\S]*^192\\.0\\.2\\.10\tnas$`, 'm'));
    assert.match(await sh('cat /etc/resolv.conf'), /^search lan\nnameserver 192\.0\.2\.1\noptions ndots:5$/m);
    assert.match(await sh('df -k /memory'), /\s8192\s/);
    assert.equal(
      await sh('echo x > /own/f && echo y > /part/g && echo z > /memory/h && echo last > /dev/termination-log && stat -c %g /own/f'),
      '2000',
    );
    assert.equal(readFileSync(house.emptyDir('own', 'a/b/g'), 'utf8'), 'y\n');
    assert.equal(house.read('containers/c/00000000'), 'last\n');
    assert.match(await sh('cat /disk/f /etc/app.conf; echo no > /disk/g'), /preciousprecious[\s\S]*Read-only/);

    // the node changes, the container runs on
    house.dns = { servers: ['192.0.2.53'], searches: [], options: [] };
    await manager.resolvChanged();
    await manager.hostsChanged([
      { desired, ips: [ip] },
      { desired: pod({}, { uid: 'uid-2', metadata: { name: 'db' } }), ips: ['10.0.0.7'] },
    ]);
    assert.match(await sh('cat /etc/resolv.conf'), /^nameserver 192\.0\.2\.53$/m);
    assert.match(await sh('cat /etc/hosts'), /^10\.0\.0\.7\tdb\tdb\.default$/m);

    // a restart of the container: the data stays, the last words are new
    await runtime.stopContainer(id, 0);
    await runtime.removeContainer(id);
    const again = await start(1);
    assert.equal(await again.sh('cat /own/f /part/g /memory/h; cat /dev/termination-log'), 'x\ny\nz');

    await runtime.stopSandbox(sandboxId);
    await runtime.removeSandbox(sandboxId);
    await until('the folder goes', 45_000, () =>
      manager.tearDown(desired.uid).then(
        () => true,
        () => false,
      ),
    );
    assert.deepEqual(readdirSync(house.podsDir), []);
    assert.deepEqual(mountsUnder(house.dir), []);
    assert.equal(readFileSync(join(disk, 'f'), 'utf8'), 'precious');
    assert.ok(!existsSync(join(disk, 'g')));
  } finally {
    runtime.close();
    await bed.stop();
  }
});
