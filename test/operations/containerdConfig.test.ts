/** One setting of containerd's file changed, every other byte left; and the files where that cannot be had. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { readConfig, sandboxImageLines, setSandboxImage } from '../../src/operations/containerdConfig.ts';
import { tomlPlaces } from '../../src/operations/tomlPlaces.ts';

const image = 'podsched.dev/pause:1';

/** /etc/containerd/config.toml of Debian 12's package. */
const debian = `version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
`;

/** The parts of a version 3 file that matter here, as containerd 2 writes it. */
const version3 = `version = 3
root = '/var/lib/containerd'
state = '/run/containerd'
disabled_plugins = []
imports = []

[grpc]
  address = '/run/containerd/containerd.sock'

[plugins]
  [plugins.'io.containerd.cri.v1.images']
    snapshotter = 'overlayfs'
    image_pull_with_sync_fs = false

    [plugins.'io.containerd.cri.v1.images'.pinned_images]
      sandbox = 'registry.k8s.io/pause:3.10'

    [plugins.'io.containerd.cri.v1.images'.registry]
      config_path = ''

  [plugins.'io.containerd.cri.v1.runtime']
    enable_selinux = false
`;

/** As Docker's package has it: CRI off, everything else in comments, and no version. */
const docker = `#   Copyright 2018-2022 Docker Inc.

disabled_plugins = ["cri"]

#root = "/var/lib/containerd"
#[plugins."io.containerd.grpc.v1.cri"]
#  sandbox_image = "x"
`;

const setIn = (text: string): string => {
  const result = setSandboxImage(text, image);
  assert.ok(result.ok, result.ok ? '' : result.why);
  assert.equal(readConfig(result.text).sandboxImage, image);
  return result.text;
};

/** Lines taken away and added, without order. */
const difference = (before: string, after: string): string[] => {
  const [a, b] = [before.split('\n'), after.split('\n')];
  return [...a.filter((l) => !b.includes(l)).map((l) => `-${l}`), ...b.filter((l) => !a.includes(l)).map((l) => `+${l}`)];
};

test('in the file of Debian 12 a line comes into the table that is there', () => {
  const text = setIn(debian);
  assert.deepEqual(difference(debian, text), [`+    sandbox_image = "${image}"`]);
  assert.equal(text.indexOf('sandbox_image'), debian.indexOf('    [plugins."io.containerd.grpc.v1.cri".cni]') + 4);
});

test('in what this containerd writes itself one value changes', () => {
  const whole = execFileSync('containerd', ['config', 'default'], { encoding: 'utf8' });
  const before = readConfig(whole);
  assert.match(before.sandboxImage ?? '', /pause:/);
  assert.equal(before.unclear, undefined);
  const text = setIn(whole);
  assert.equal(difference(whole, text).length, 2);
  assert.equal(text.replace(`"${image}"`, `"${before.sandboxImage}"`), whole);
});

test('in a version 3 file it is the pinned image named sandbox', () => {
  const text = setIn(version3);
  assert.deepEqual(difference(version3, text), ["-      sandbox = 'registry.k8s.io/pause:3.10'", `+      sandbox = "${image}"`]);
  const without = version3.replace("      sandbox = 'registry.k8s.io/pause:3.10'\n", '');
  assert.deepEqual(difference(without, setIn(without)), [`+      sandbox = "${image}"`]);
});

test('every other byte stays: comments, spaces, order, line ends, no newline at the end', () => {
  const table = [
    ['version = 2\n', `version = 2\n\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "${image}"\n`],
    ['version = 2', `version = 2\n\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "${image}"\n`],
    [
      'version = 2 # two\r\n[plugins."io.containerd.grpc.v1.cri"]\r\n',
      `version = 2 # two\r\n[plugins."io.containerd.grpc.v1.cri"]\r\n  sandbox_image = "${image}"\r\n`,
    ],
    [
      'version = 2\n[ plugins . "io.containerd.grpc.v1.cri" ] # here\n\tsandbox_image="a" # why\n',
      `version = 2\n[ plugins . "io.containerd.grpc.v1.cri" ] # here\n\tsandbox_image="${image}" # why\n`,
    ],
    [
      'version = 2\n[plugins."io.containerd.grpc.v1.cri"]',
      `version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "${image}"\n`,
    ],
    [
      'version = 2\nplugins."io.containerd.grpc.v1.cri".sandbox_image = "a"\n',
      `version = 2\nplugins."io.containerd.grpc.v1.cri".sandbox_image = "${image}"\n`,
    ],
    [
      'version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "a"\n',
      `version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "a"\n\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "${image}"\n`,
    ],
    // what only looks like it
    [
      `version = 2\nx = """\nsandbox_image = "a"\n[plugins."io.containerd.grpc.v1.cri"]\n"""\ny = [ "#", # ]\n '[a]' ]\n`,
      `version = 2\nx = """\nsandbox_image = "a"\n[plugins."io.containerd.grpc.v1.cri"]\n"""\ny = [ "#", # ]\n '[a]' ]\n\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "${image}"\n`,
    ],
  ] as const;
  for (const [before, after] of table) assert.equal(setIn(before), after);
});

test('a file in which it cannot be done safely is left, with the reason', () => {
  const cri = '[plugins."io.containerd.grpc.v1.cri"]';
  const table = [
    ['version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n', /imports other files/],
    ['version = 1\n', /version is 1/],
    [docker, /version is 1/],
    ['version = 4\n', /version is 4/],
    ['version = 2\nplugins = { a = 1 }\n', /in a way that is not understood/],
    ['version = 2\n[plugins]\n"io.containerd.grpc.v1.cri" = { sandbox_image = "a" }\n', /in a way that is not understood/],
    [`version = 2\n${cri}\nsandbox_image = 'a'\nsandbox_image = 'b'\n`, /in a way that is not understood/],
    [`version = 2\n${cri}\n${cri}\n`, /in a way that is not understood/],
    [`version = 2\n[${cri}]\n`, /in a way that is not understood/],
    [`version = 2\n${cri}\nsandbox_image = """a"""\n`, /in a way that is not understood/],
    [`version = 2\nplugins."io.containerd.grpc.v1.cri".enable_selinux = true\n`, /in a way that is not understood/],
    ['version = 2\nthis is none\n', /line 2 is not understood/],
    ['version = 2\n[a\n', /line 2 is not understood/],
    ['version = 2\nx = "a\n', /line 2 is not understood/],
    ['version = 2\nx = [ 1,\n', /line 2 is not understood/],
  ] as const;
  for (const [text, why] of table) {
    const result = setSandboxImage(text, image);
    assert.ok(!result.ok, text);
    assert.match(result.why, why);
  }
});

test('a person is given the lines for the version of the file', () => {
  assert.deepEqual(sandboxImageLines(2, 'a:1'), ['[plugins."io.containerd.grpc.v1.cri"]', '  sandbox_image = "a:1"']);
  assert.deepEqual(sandboxImageLines(3, 'a:1'), ["[plugins.'io.containerd.cri.v1.images'.pinned_images]", '  sandbox = "a:1"']);
});

test('what matters of a file is read', () => {
  const table = [
    ['', { version: 1, criDisabled: false, imports: false }],
    [debian, { version: 2, criDisabled: false, imports: false }],
    [docker, { version: 1, criDisabled: true, imports: false }],
    [version3, { version: 3, criDisabled: false, imports: false, sandboxImage: 'registry.k8s.io/pause:3.10', syncFs: false }],
    [
      version3.replace('fs = false', 'fs = true'),
      { version: 3, criDisabled: false, imports: false, sandboxImage: 'registry.k8s.io/pause:3.10', syncFs: true },
    ],
    [
      'version = 2\ndisabled_plugins = [ # "cri"\n "io.containerd.snapshotter.v1.zfs",\n]\n',
      { version: 2, criDisabled: false, imports: false },
    ],
    ['version = 2\ndisabled_plugins = [\n "io.containerd.grpc.v1.cri",\n]\n', { version: 2, criDisabled: true, imports: false }],
  ] as const;
  for (const [text, view] of table) assert.deepEqual(readConfig(text), view);
});

test('strings end where TOML ends them', () => {
  const values = [
    '"a\\"b"',
    "'a\\'",
    '"""a"b""c"""',
    '"""a""""',
    "'''a'\n'b'''",
    '""',
    '[["a"], [ # ]\n]]',
    '{ a = "}" }',
    '1979-05-27T07:32:00Z',
  ];
  for (const value of values) {
    const text = `x = ${value} # rest\ny = 1\n`;
    const { keys, unclear } = tomlPlaces(text);
    assert.equal(unclear, undefined, value);
    assert.deepEqual(
      keys.map((k) => text.slice(k.from, k.to)),
      [value, '1'],
    );
  }
});
