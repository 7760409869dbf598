import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { type HostsInputs, hostsText, type Neighbour } from '../../src/volumes/hosts.ts';
import { rewrite, writeInPlace } from '../../src/volumes/inPlace.ts';
import { resolvText } from '../../src/volumes/resolv.ts';
import { settle } from '../fakes/fakeClock.ts';
import { container, first, folder, House, mode, pod } from './house.ts';

const head = `# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
`;

const text = (o: Partial<HostsInputs> & { readonly spec?: DesiredPod['pod']['spec'] | object }): string => {
  const desired = pod({ ...o.spec });
  return hostsText({ pod: desired.pod, uid: desired.uid, ips: ['10.0.0.5'], nodeHosts: '', clusterDomain: '', neighbours: [], ...o });
};
const neighbour = (name: string, namespace: string, ...ips: string[]): Neighbour => ({ uid: `${name}.${namespace}`, name, namespace, ips });

test('a pod of its own network has the kubelet’s lines, its names and its aliases', () => {
  assert.equal(text({}), `${head}10.0.0.5\tweb\n`);
  const spec = {
    hostname: 'gateway',
    subdomain: 'edge',
    hostAliases: [
      { ip: '192.0.2.10', hostnames: ['nas', 'nas.home.example'] },
      { ip: '192.0.2.11', hostnames: ['printer'] },
    ],
  };
  assert.equal(
    text({ spec, ips: ['10.0.0.5', 'fd00::5'], clusterDomain: 'cluster.local' }),
    `${head}10.0.0.5\tgateway.edge.default.svc.cluster.local\tgateway\nfd00::5\tgateway.edge.default.svc.cluster.local\tgateway
\n# Entries added by HostAliases.\n192.0.2.10\tnas\tnas.home.example\n192.0.2.11\tprinter\n`,
  );
  assert.match(text({ spec }), /^10\.0\.0\.5\tgateway\.edge\.default\.svc\tgateway$/m);
});

test('a pod on the node’s network has the node’s own file', () => {
  const nodeHosts = '127.0.0.1 localhost\n127.0.1.1 raspberrypi\n\n';
  assert.equal(
    text({ spec: { hostNetwork: true, hostAliases: [{ ip: '192.0.2.10', hostnames: ['nas'] }] }, nodeHosts, ips: [] }),
    '# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n127.0.1.1 raspberrypi\n\n# Entries added by HostAliases.\n192.0.2.10\tnas\n',
  );
});

test('the other pods of the node are there by name, and none can take a name that is somebody else’s', () => {
  const lines = (neighbours: readonly Neighbour[], spec: object = {}): string[] => {
    const [, after = ''] = text({ neighbours, spec }).split('# The other pods of this node.\n');
    return after.split('\n').filter((l) => l !== '');
  };
  assert.deepEqual(lines([neighbour('db', 'default', '10.0.0.7'), neighbour('api', 'shop', '10.0.0.8', 'fd00::8')]), [
    '10.0.0.8\tapi\tapi.shop',
    'fd00::8\tapi\tapi.shop',
    '10.0.0.7\tdb\tdb.default',
  ]);
  // one name in several namespaces: the own one, or nobody
  const twice = [neighbour('db', 'shop', '10.0.0.7'), neighbour('db', 'lab', '10.0.0.8')];
  assert.deepEqual(lines(twice), ['10.0.0.8\tdb.lab', '10.0.0.7\tdb.shop']);
  assert.deepEqual(lines([...twice, neighbour('db', 'default', '10.0.0.9')]), [
    '10.0.0.9\tdb\tdb.default',
    '10.0.0.8\tdb.lab',
    '10.0.0.7\tdb.shop',
  ]);
  // taken: by the machine, by the pod itself, by its aliases; and a dot may make a name of the internet
  const hostAliases = [{ ip: '192.0.2.10', hostnames: ['nas', 'cam.default'] }];
  const greedy = ['localhost', 'web', 'nas', 'cam', 'example.org'].map((name) => neighbour(name, 'default', '10.6.6.6'));
  assert.deepEqual(lines(greedy, { hostAliases }), [
    '10.6.6.6\tcam',
    '10.6.6.6\texample.org.default',
    '10.6.6.6\tlocalhost.default',
    '10.6.6.6\tnas.default',
    '10.6.6.6\tweb.default',
  ]);
  assert.deepEqual(lines([{ ...neighbour('web', 'default', '10.0.0.5'), uid: 'uid-1' }, neighbour('none', 'default')]), []);
});

test('a resolv.conf says what it was given and is never empty', () => {
  assert.match(
    resolvText({ servers: ['192.0.2.1', '192.0.2.2'], searches: ['lan', 'home'], options: ['ndots:5', 'edns0'] }),
    /^#.*\nsearch lan home\nnameserver 192\.0\.2\.1\nnameserver 192\.0\.2\.2\noptions ndots:5 edns0\n$/,
  );
  assert.match(resolvText({ servers: [], searches: [], options: [] }), /^#.*\n$/);
});

test('a file is rewritten in place: same inode, no rest of the old text, no write of the same text', async () => {
  const path = join(folder(), 'f');
  assert.equal(await rewrite(path, 'x'), undefined);
  assert.equal(await writeInPlace(path, 'a long text\n', 0o644), true);
  const before = statSync(path, { bigint: true });
  assert.equal(await writeInPlace(path, 'a long text\n', 0o644), false);
  assert.deepEqual(statSync(path, { bigint: true }).ctimeNs, before.ctimeNs);
  assert.equal(await writeInPlace(path, 'short\n', 0o644), true);
  assert.equal(statSync(path).size, 6);
  assert.equal(await rewrite(path, 'short!\n'), true);
  assert.equal(await rewrite(path, 'short!\n'), false);
  assert.equal(statSync(path, { bigint: true }).ino, before.ino);
});

const inode = (path: string): string => {
  const { ino, ctimeNs } = statSync(path, { bigint: true });
  return `${ino} ${ctimeNs}`;
};

test('a file whose maker was killed before it was open to all is opened by the next agent', async () => {
  const path = join(folder(), 'hosts');
  writeFileSync(path, 'text\n', { mode: 0o600 });
  await writeInPlace(path, 'text\n', 0o644);
  assert.equal(mode(path), '644');
});

test('a pod comes and goes: /etc/hosts of the running ones follows in place, and only where it changes', async () => {
  const house = new House();
  const web = pod({});
  const db = pod({}, { uid: 'uid-2', metadata: { name: 'db' } });
  const node = pod({ hostNetwork: true }, { uid: 'uid-3', metadata: { name: 'node' } });
  const later = pod({}, { uid: 'uid-4', metadata: { name: 'later' } });
  writeFileSync(join(house.dir, 'node-hosts'), '127.0.1.1 pi\n');
  for (const desired of [web, db, node, later]) await house.manager.setUp(desired);
  const hosts = (uid: string): string => join(house.podsDir, uid, 'etc-hosts');
  await house.manager.mounts(web, first(web), 0, ['10.0.0.5']);
  await house.manager.mounts(node, first(node), 0, []);
  const before = statSync(hosts('uid-1')).ino;
  const all = [
    { desired: web, ips: ['10.0.0.5'] },
    { desired: node, ips: ['192.0.2.9'] },
  ];
  const changed = async (pods: typeof all): Promise<void> => {
    const done = house.manager.hostsChanged(pods);
    await house.clock.advance(200);
    await done;
  };
  await changed([...all, { desired: db, ips: ['10.0.0.6'] }]);
  assert.match(house.read('etc-hosts'), /^10\.0\.0\.6\tdb\tdb\.default$/m);
  assert.match(house.read('etc-hosts'), /^192\.0\.2\.9\tnode\tnode\.default$/m);
  assert.match(house.read('../uid-3/etc-hosts'), /127\.0\.1\.1 pi\n[\s\S]*10\.0\.0\.5\tweb\tweb\.default\n/);
  assert.equal(statSync(hosts('uid-1')).ino, before);
  assert.throws(() => statSync(hosts('uid-4')), 'no file for a pod without a container');
  // the same again, by another agent too, which knows nothing of what was written
  const written = inode(hosts('uid-1'));
  await changed([...all, { desired: db, ips: ['10.0.0.6'] }]);
  house.newAgent();
  await changed([...all, { desired: db, ips: ['10.0.0.6'] }]);
  assert.equal(inode(hosts('uid-1')), written);
  await changed(all);
  assert.doesNotMatch(house.read('etc-hosts'), /db/);
  assert.deepEqual(house.warnings, []);
});

test('calls that come close together are one, the newest counts, and a starting pod has all names at once', async () => {
  const house = new House();
  const web = pod({});
  await house.manager.setUp(web);
  const db = (ip: string) => ({ desired: pod({}, { uid: 'uid-2', metadata: { name: 'db' } }), ips: [ip] });
  const done = [house.manager.hostsChanged([db('10.0.0.6')]), house.manager.hostsChanged([db('10.0.0.7')])];
  await house.manager.mounts(web, first(web), 0, ['10.0.0.5']);
  assert.match(house.read('etc-hosts'), /10\.0\.0\.7\tdb/);
  const written = inode(house.path('etc-hosts'));
  await settle();
  assert.equal(house.clock.sleeping, 1);
  await house.clock.advance(200);
  await Promise.all(done);
  assert.equal(inode(house.path('etc-hosts')), written);
});

test('the node’s DNS servers change: every pod’s resolv.conf follows in place, after an agent restart too', async () => {
  const house = new House();
  const web = pod({ containers: [container('c'), container('d')] });
  await house.manager.setUp(web);
  await house.manager.mounts(web, first(web), 0, ['10.0.0.5']);
  const path = house.path('etc-resolv.conf');
  const { ino } = statSync(path);
  assert.match(house.read('etc-resolv.conf'), /nameserver 192\.0\.2\.1\n/);
  house.dns = { servers: ['192.0.2.2'], searches: [], options: [] };
  await house.manager.resolvChanged();
  assert.match(house.read('etc-resolv.conf'), /nameserver 192\.0\.2\.2\n/);
  const written = inode(path);
  await house.manager.resolvChanged();
  await house.newAgent().setUp(web);
  assert.equal(inode(path), written, 'nothing to write');
  house.dns = { servers: ['192.0.2.3'], searches: [], options: [] };
  await house.newAgent().setUp(web);
  assert.match(house.read('etc-resolv.conf'), /nameserver 192\.0\.2\.3\n/);
  assert.equal(statSync(path).ino, ino);
});

test('a link in the place of a file of ours is not followed', async () => {
  const house = new House();
  const web = pod({});
  await house.manager.setUp(web);
  const outside = join(house.dir, 'outside');
  writeFileSync(outside, 'precious');
  const { symlinkSync, readFileSync } = await import('node:fs');
  symlinkSync(outside, house.path('etc-hosts'));
  await assert.rejects(house.manager.mounts(web, first(web), 0, ['10.0.0.5']), /ELOOP/);
  assert.equal(readFileSync(outside, 'utf8'), 'precious');
});
