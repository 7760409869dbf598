/** Whether containerd will find a network and its programs. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type CniSeen, cniBinDirs, cniFinding, cniSettings } from '../../src/operations/doctorCni.ts';

const ours = readFileSync(new URL('../../systemd/10-podsched.conflist', import.meta.url), 'utf8');
const debian = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\n  bin_dir = "/usr/lib/cni"\n  conf_dir = "/etc/cni/net.d"\n';
const programs = ['bridge', 'host-local', 'loopback', 'portmap'];

interface Seen extends Partial<Omit<CniSeen, 'settings'>> {
  readonly toml?: string | undefined;
}

function told({ toml = debian, ...o }: Seen = {}): string {
  const settings = cniSettings(toml);
  const { level, message, remedy } = cniFinding({
    settings,
    files: [{ name: '10-podsched.conflist', text: ours }],
    programs: { '/usr/lib/cni': programs, '/opt/cni/bin': [] },
    network: { ready: true, message: '' },
    configFile: '/etc/containerd/config.toml',
    ...o,
  });
  assert.equal(remedy === undefined, level === 'ok');
  return `${level}: ${message}${remedy === undefined ? '' : ` | ${remedy}`}`;
}

test('our own network with its programs where containerd looks for them is well', () => {
  assert.equal(told(), 'ok: /etc/cni/net.d/10-podsched.conflist (bridge, portmap, host-local)');
  assert.match(told({ toml: '', programs: { '/opt/cni/bin': programs, '/usr/lib/cni': [] } }), /^ok/);
});

test('no folder, or no network in it', () => {
  assert.match(
    told({ files: undefined }),
    /^wrong: \/etc\/cni\/net\.d does not exist: only pods with hostNetwork start \| Put a network there/,
  );
  assert.match(told({ files: [] }), /^wrong: there is no network in/);
  assert.match(
    told({
      files: [
        { name: '.kubernetes-cni-keep', text: '' },
        { name: 'a.conflist.bak', text: ours },
      ],
    }),
    /^wrong: there is no network in/,
  );
});

test('programs that lie elsewhere: the setting, in the words of this version of the file', () => {
  const elsewhere = { '/opt/cni/bin': [], '/usr/lib/cni': programs };
  const opt = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "/opt/cni/bin"\n';
  assert.match(
    told({ toml: opt, programs: elsewhere }),
    /^wrong: bridge, portmap, host-local, loopback are not in \/opt\/cni\/bin.* \| They are in \/usr\/lib\/cni\. In \/etc\/containerd\/config\.toml, below \[plugins\."io\.containerd\.grpc\.v1\.cri"\.cni\]: bin_dir = "\/usr\/lib\/cni" and then: systemctl restart containerd/,
  );
  const three = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dirs = ['/opt/cni/bin'] # as built\n";
  assert.match(
    told({ toml: three, programs: elsewhere }),
    /below \[plugins\.'io\.containerd\.cri\.v1\.runtime'\.cni\]: bin_dirs = \["\/usr\/lib\/cni"\]/,
  );
});

test('programs that are nowhere', () => {
  assert.match(
    told({ programs: { '/usr/lib/cni': ['bridge', 'host-local', 'loopback'] } }),
    /^wrong: portmap is not in \/usr\/lib\/cni.* \| apt-get install containernetworking-plugins$/,
  );
  assert.match(told({ programs: {} }), /^wrong: bridge, .*loopback are not in/);
});

test('a first file that is no network stands in the way of all others', () => {
  const files = (name: string, text: string) => [
    { name: '99-good.conflist', text: ours },
    { name, text },
  ];
  for (const text of [
    '',
    'null',
    '[]',
    '"x"',
    '{',
    '{}',
    '{"plugins":[]}',
    '{"plugins":[null]}',
    '{"plugins":[{"type":7}]}',
    '{"plugins":"x"}',
    '\0\u001b[2J',
  ])
    for (const name of ['00-bad.conf', '00-bad.conflist', '00-bad.json'])
      assert.match(told({ files: files(name, text) }), /^wrong: \/etc\/cni\/net\.d\/00-bad\.\w+ is no network/, `${name} ${text}`);
  // a list under the name of a single one, and the other way about
  assert.match(told({ files: files('00-bad.conf', ours) }), /is no network/);
  assert.match(told({ files: files('00-bad.conflist', '{"type":"bridge"}') }), /is no network/);
});

test('only the first of several networks is taken', () => {
  const files = [
    { name: '20-b.conflist', text: ours },
    { name: '10-a.conf', text: '{"type":"bridge","ipam":{"type":"host-local"}}' },
  ];
  assert.match(told({ files }), /^advice: \/etc\/cni\/net\.d\/10-a\.conf \(bridge, host-local\) is taken, and no other file of/);
});

test('a runtime that has no network although all is there is told with its own words', () => {
  assert.match(
    told({ network: { ready: false, message: 'cni plugin not initialized' } }),
    /^wrong: .*: cni plugin not initialized \| journalctl -u containerd/,
  );
  assert.match(told({ network: undefined }), /^ok/);
});

test('settings are read of every version, and garbage sets nothing', () => {
  const dirs = (toml: string | undefined) => [cniSettings(toml).confDir, cniSettings(toml).binDirs];
  assert.deepEqual(dirs(debian), ['/etc/cni/net.d', ['/usr/lib/cni']]);
  assert.deepEqual(dirs('[plugins.cri.cni]\nconf_dir = "/c"\nbin_dir = "/b"\n'), ['/c', ['/b']]);
  assert.deepEqual(dirs("version = 3\n[plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dirs = [\n '/a', # one\n \"/b\",\n]\n"), [
    '/etc/cni/net.d',
    ['/a', '/b'],
  ]);
  for (const toml of [undefined, '', '\0', 'version = 9', 'version = "', '[[plugins]]', debian.replaceAll('"/usr/lib/cni"', '7')])
    assert.deepEqual(dirs(toml), ['/etc/cni/net.d', undefined], toml);
  assert.deepEqual(cniBinDirs(cniSettings(debian)), ['/usr/lib/cni', '/opt/cni/bin']);
  assert.deepEqual(cniBinDirs(cniSettings(undefined)), ['/opt/cni/bin', '/usr/lib/cni']);
});

test('names of a hostile network name no path and no property', () => {
  const text = JSON.stringify({ plugins: [{ type: '../../bin/sh' }, { type: 'constructor', ipam: { type: '__proto__' } }] });
  assert.match(told({ files: [{ name: 'x.conflist', text }] }), /^wrong: \.\.\/\.\.\/bin\/sh, constructor, __proto__ are not in/);
  const many = JSON.stringify({ plugins: Array.from({ length: 10_000 }, (_, i) => ({ type: `p${i}` })) });
  assert.ok(told({ files: [{ name: 'x.conflist', text: many }] }).length < 2000);
});
