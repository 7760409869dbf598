/** What the doctor says of a machine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeError } from '../../src/container/runtime.ts';
import { type DoctorDeps, examine } from '../../src/operations/doctor.ts';
import type { MachineFacts } from '../../src/operations/doctorFacts.ts';

const away = new RuntimeError('unavailable', 'connect ENOENT /run/containerd/containerd.sock');
const cri = (line: string): string => `version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n${line}\n`;

const conflist = JSON.stringify({ name: 'n', plugins: [{ type: 'bridge', ipam: { type: 'host-local' } }] });

const wellFacts: MachineFacts = {
  cgroups: async () => ({
    facts: { version: 'v2', controllers: new Set(['cpu', 'cpuset', 'io', 'memory', 'pids', 'hugetlb']) },
    line: { place: 'the line in /boot/firmware/cmdline.txt', booted: '' },
  }),
  pageBytes: async () => 4096,
  disks: async () => [{ use: 'state', path: '/', capacityBytes: 32e9, availableBytes: 20e9, inodes: 1000, inodesFree: 900, kind: 'disk' }],
  readOnly: async () => [],
  clock: async () => ({ nowMs: Date.parse('2026-05-01T00:00:00Z'), synced: true, hasRtc: true }),
  power: async () => ({ firmware: { now: 0, before: 0 }, underVoltage: false, cards: [], resetReasons: [] }),
  architecture: async () => ({ machine: 'aarch64', agent: 'arm64', libseccomp: undefined }),
  identity: async () => ({ stored: { nodeName: 'pi-1', machine: 'aaaa' }, hashes: ['aaaa'] }),
  cni: async () => ({
    files: [{ name: '10-n.conflist', text: conflist }],
    programs: { '/usr/lib/cni': ['bridge', 'host-local', 'loopback'] },
  }),
};

interface Machine extends Partial<DoctorDeps> {
  readonly version?: string | Error;
  readonly sandbox?: string | undefined;
  readonly here?: readonly string[];
  readonly config?: string | undefined;
}

async function lines(m: Machine): Promise<Record<string, string>> {
  const { version = '1.6.20~ds1', here = [], config } = m;
  const findings = await examine({
    runtime: {
      version: async () => {
        if (version instanceof Error) throw version;
        return { runtimeName: 'containerd', runtimeVersion: version };
      },
      sandboxImage: async () => {
        if (version instanceof Error) throw version;
        return m.sandbox;
      },
      status: async () => {
        if (version instanceof Error) throw version;
        return [{ type: 'NetworkReady', status: true, reason: '', message: '' }];
      },
    },
    machine: wellFacts,
    parts: async () => ({
      system: 'Raspberry Pi 4 Model B',
      processor: 'Cortex-A72, 4 cores',
      disks: [{ device: 'mmcblk0', name: 'SC32G', kind: 'SD', bytes: 31_900_000_000 }],
    }),
    isHere: async (image) => here.includes(image),
    endpoint: 'unix:///c.sock',
    configFile: '/etc/containerd/config.toml',
    readConfigFile: async () => config,
    nodeVersion: '20.19.0',
    manifests: '/etc/podsched',
    stateDir: '/var/lib/podsched',
    lookAtFolder: async () => undefined,
    ...m,
  });
  return Object.fromEntries(findings.map((f) => [f.name, `${f.level}: ${f.message}${f.remedy === undefined ? '' : ` | ${f.remedy}`}`]));
}

test('a machine on which all is well is told so, line by line', async () => {
  assert.deepEqual(await lines({ sandbox: 'podsched.dev/pause:1', here: ['podsched.dev/pause:1'] }), {
    hardware: 'ok: Raspberry Pi 4 Model B; Cortex-A72, 4 cores; mmcblk0 SC32G SD 31.9GB',
    node: 'ok: Node 20.19.0',
    containerd: 'ok: containerd 1.6.20~ds1 answers on unix:///c.sock',
    sandbox_image: 'ok: podsched.dev/pause:1 is here, and needs no registry',
    image_pull_with_sync_fs: 'ok: containerd 1.6.20~ds1 has no such setting',
    cni: 'ok: /etc/cni/net.d/10-n.conflist (bridge, host-local)',
    cgroups: 'ok: cgroup v2 with cpu, cpuset, io, memory, pids',
    architecture: 'ok: aarch64',
    page_size: 'ok: memory pages of 4 KiB',
    disk: 'ok: / (state) has 20GB of 32GB free',
    read_only: 'ok: the disks can be written',
    card: 'ok: no SD card or eMMC',
    power: 'ok: the supply is as it should be',
    clock: 'ok: it was set from the network, and goes on without power',
    identity: 'ok: pi-1, on its own board',
    manifests: 'ok: /etc/podsched can be read',
    state: 'ok: /var/lib/podsched can be written',
  });
});

test('the image of sandboxes is judged by what the runtime takes, then by its file', async () => {
  const other = 'registry.k8s.io/pause:3.6';
  const ours = 'podsched.dev/pause:1';
  const table: readonly (readonly [Machine, RegExp])[] = [
    [{ sandbox: other, here: [other] }, /^ok: registry\.k8s\.io\/pause:3\.6 is here$/],
    [{ sandbox: other }, /^wrong: .*no pod starts before.*\| podsched doctor --fix/],
    [{ sandbox: ours }, /^wrong: podsched\.dev\/pause:1 is not here yet \| Start podsched/],
    [{ sandbox: undefined, config: cri(`sandbox_image = "${ours}"`), here: [ours] }, /^ok: podsched\.dev/],
    [{ sandbox: undefined, config: 'version = 2\n' }, /^advice: containerd does not say.*\| podsched doctor --fix/],
    [
      { sandbox: other, config: cri(`sandbox_image = "${ours}"`), here: [other] },
      /^wrong: .* its file says .*\| systemctl restart containerd/,
    ],
  ];
  for (const [machine, expected] of table) assert.match((await lines(machine)).sandbox_image ?? '', expected);
});

test('a runtime that does not answer is told with what would help, and the other checks are made', async () => {
  const found = await lines({ version: away });
  assert.match(found.containerd ?? '', /^wrong: nobody answers on unix:\/\/\/c\.sock: connect ENOENT.*\| apt-get install containerd/);
  assert.match(found.sandbox_image ?? '', /^advice: could not be looked at/);
  assert.match(found.state ?? '', /^ok/);
  const docker = await lines({ version: away, config: 'disabled_plugins = ["cri"]\n' });
  assert.match(docker.containerd ?? '', /^wrong: .*turns CRI off.*\| Take "cri" out of disabled_plugins/);
});

test('the sync setting is asked for where the version has it', async () => {
  const table = [
    ['1.6.36', undefined, /^ok: .*has no such setting/],
    ['1.7.13', undefined, /^ok: .*has no such setting/],
    [
      'v1.7.14',
      undefined,
      /^advice: .*\| In \/etc\/containerd\/config\.toml, below \[plugins\."io\.containerd\.grpc\.v1\.cri"\]: image_pull_with_sync_fs = true$/,
    ],
    ['1.7.24~ds1', cri('image_pull_with_sync_fs = true'), /^ok: a pulled image/],
    [
      '2.0.0',
      "version = 3\n[plugins.'io.containerd.cri.v1.images']\nimage_pull_with_sync_fs = false\n",
      /^advice: .*\[plugins\.'io\.containerd\.cri\.v1\.images'\]/,
    ],
  ] as const;
  for (const [version, config, expected] of table)
    assert.match((await lines({ version, config })).image_pull_with_sync_fs ?? '', expected, version);
});

test('Node, the folder of manifests and the folder of state', async () => {
  const found = await lines({
    nodeVersion: '18.19.0',
    lookAtFolder: async (path) => (path === '/etc/podsched' ? 'missing' : 'EROFS'),
  });
  assert.match(found.node ?? '', /^wrong: Node 18\.19\.0 is too old/);
  assert.equal(found.manifests, 'wrong: /etc/podsched does not exist | mkdir -m 0755 /etc/podsched');
  assert.match(found.state ?? '', /^wrong: \/var\/lib\/podsched cannot be written: EROFS/);
  assert.match((await lines({ lookAtFolder: async () => 'missing' })).state ?? '', /^ok: .*is made at the first start/);
});

test('a look that fails is that check’s finding, and every other check is made', async () => {
  const broken = async () => {
    throw new Error('EIO');
  };
  const machine = Object.fromEntries(Object.keys(wellFacts).map((name) => [name, broken])) as unknown as MachineFacts;
  const found = await lines({ sandbox: 'podsched.dev/pause:1', here: ['podsched.dev/pause:1'], machine });
  const names = ['cni', 'cgroups', 'architecture', 'page_size', 'disk', 'read_only', 'card', 'power', 'clock', 'identity'];
  for (const name of names) assert.equal(found[name], 'advice: could not be looked at: EIO | See the other findings.', name);
  assert.match(found.state ?? '', /^ok/);
});

test('the network is looked for without a runtime too', async () => {
  assert.match((await lines({ version: away })).cni ?? '', /^ok/);
});
