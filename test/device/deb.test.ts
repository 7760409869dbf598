import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { loadOptions } from '../../src/options.ts';
import { mustRun, run } from './process.ts';

const root = new URL('../../', import.meta.url).pathname;
const scripts = ['postinst', 'prerm', 'postrm'] as const;
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

let dir = '';
let deb = '';
/** The package unpacked: what is installed, and below `control` what dpkg reads. */
const unpacked = (path: string): string => join(dir, 'unpacked', path);
const script = (name: string): string => readFileSync(join(dir, 'control', name), 'utf8');

async function build(out: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  await mustRun(process.execPath, [join(root, 'bundle/deb.mjs'), out], {
    env: { ...process.env, SOURCE_DATE_EPOCH: '1700000000', ...env },
  });
  const [name] = readdirSync(out).filter((file) => file.endsWith('.deb'));
  return join(out, name ?? '');
}

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'podsched-debtest-'));
  deb = await build(join(dir, 'first'));
  await mustRun('dpkg-deb', ['--extract', deb, join(dir, 'unpacked')]);
  await mustRun('dpkg-deb', ['--control', deb, join(dir, 'control')]);
});
after(() => rmSync(dir, { recursive: true, force: true }));

test('the package has the version of package.json, is for all machines, and asks for what podsched runs on', async () => {
  assert.ok(deb.endsWith(`/podsched_${version.replace('-', '~')}_all.deb`), deb);
  const field = async (name: string) => (await mustRun('dpkg-deb', ['--field', deb, name])).trim();
  assert.equal(await field('Package'), 'podsched');
  assert.equal(await field('Architecture'), 'all');
  const depends = (await field('Depends')).split(/,\s*/);
  for (const needed of [/^nodejs \(>= 20\.19~\)$/, /^containerd \|/, /^containernetworking-plugins$/])
    assert.ok(
      depends.some((d) => needed.test(d)),
      `${needed} in ${depends}`,
    );
  assert.ok(Number(await field('Installed-Size')) > 500);
});

test('a release candidate is older than its release', async () => {
  const candidate = await build(join(dir, 'candidate'), { DEB_VERSION: '9.0.0~rc.1' });
  assert.match(candidate, /podsched_9\.0\.0~rc\.1_all\.deb$/);
  assert.equal((await run('dpkg', ['--compare-versions', '9.0.0~rc.1', 'lt', '9.0.0'])).code, 0);
});

test('everything is in its place, owned by root, and nobody else may write it', async () => {
  const listed = (await mustRun('dpkg-deb', ['--contents', deb])).trim().split('\n');
  const entries = listed.map((line) => {
    const [mode = '', owner = '', , , , path = ''] = line.split(/\s+/);
    return { mode, owner, path: path.replace(/^\./, '') };
  });
  for (const { mode, owner, path } of entries) {
    assert.equal(owner, 'root/root', path);
    if (mode.startsWith('d')) assert.equal(mode, 'drwxr-xr-x', path);
  }
  const modes = Object.fromEntries(entries.filter((e) => !e.mode.startsWith('d')).map((e) => [e.path, e.mode]));
  const expected = {
    '/usr/bin/podsched': '-rwxr-xr-x',
    '/usr/lib/podsched/podsched.cjs': '-rwxr-xr-x',
    '/usr/lib/systemd/system/podsched.service': '-rw-r--r--',
    '/usr/lib/sysusers.d/podsched.conf': '-rw-r--r--',
    '/usr/lib/tmpfiles.d/podsched.conf': '-rw-r--r--',
    '/usr/share/podsched/10-podsched.conflist': '-rw-r--r--',
    '/etc/podsched/podsched.yaml': '-rw-r--r--',
  };
  for (const [path, mode] of Object.entries(expected)) assert.equal(modes[path], mode, path);
  // a pod network of the package's own would hide the one that a node has
  assert.deepEqual(
    Object.keys(modes).filter((path) => !/^\/usr\/|^\/etc\/podsched\/podsched\.yaml$/.test(path)),
    [],
  );
  for (const [path, mode] of Object.entries(modes)) assert.match(mode, /^-rw[x-]r-[x-]r-[x-]$/, path);
});

test('the installed bundle says its version', async () => {
  const { stdout } = await run('sh', [unpacked('usr/bin/podsched'), 'version'], {
    env: { ...process.env, PODSCHED_BUNDLE: unpacked('usr/lib/podsched/podsched.cjs') },
  });
  assert.ok(stdout.includes(version), stdout);
});

test('the configuration is a conffile, right without a warning, and has the embedded broker', () => {
  assert.equal(script('conffiles'), '/etc/podsched/podsched.yaml\n');
  const path = unpacked('etc/podsched/podsched.yaml');
  const { config, problems, warnings, empty } = loadOptions({ flags: {}, env: {}, file: { path, text: readFileSync(path, 'utf8') } });
  assert.deepEqual([problems, warnings, empty], [[], [], false]);
  assert.deepEqual(config?.['mqtt.servers'], ['embedded']);
});

test('every file but the conffiles has its checksum, and the checksums are right', async () => {
  const sums = script('md5sums');
  const { code, stderr } = await run('md5sum', ['--check', '--strict', '--quiet', join(dir, 'control/md5sums')], {
    cwd: join(dir, 'unpacked'),
  });
  assert.equal(code, 0, stderr);
  const files = readdirSync(join(dir, 'unpacked'), { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).length;
  assert.equal(sums.trim().split('\n').length, files - 1);
});

test('the copyright file names every package inside of the bundle with the text of its licence', () => {
  const text = readFileSync(unpacked('usr/share/doc/podsched/copyright'), 'utf8');
  for (const name of ['@grpc/grpc-js', 'aedes', 'mqtt', 'yaml', 'commander'])
    assert.match(text, new RegExp(`^Comment: ${name} \\d`, 'm'), name);
  const bodies = text.split(/^License: /m).slice(2);
  assert.ok(bodies.length > 10);
  for (const body of bodies) assert.ok(body.split('\n').length > 4, `no text of a licence: ${body.slice(0, 80)}`);
});

test('the changelog is one that Debian reads', async () => {
  const file = join(dir, 'changelog');
  writeFileSync(file, gunzipSync(readFileSync(unpacked('usr/share/doc/podsched/changelog.gz'))));
  assert.match(
    readFileSync(file, 'utf8'),
    /^podsched \(\S+\) unstable; urgency=medium\n\n {2}\* .+\n\n -- .+ <.+> {2}\w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000\n$/,
  );
});

test('the same tree gives the same bytes, whatever the umask and the time zone', async () => {
  const again = join(dir, 'again');
  mkdirSync(again);
  await mustRun('sh', ['-c', `umask 077; exec "$0" "$@"`, process.execPath, join(root, 'bundle/deb.mjs'), again], {
    env: { ...process.env, SOURCE_DATE_EPOCH: '1700000000', TZ: 'Asia/Tokyo' },
  });
  const [name = ''] = readdirSync(again);
  assert.ok(readFileSync(join(again, name)).equals(readFileSync(deb)));
});

test('the scripts are plain sh, stop at the first error and name no service manager that policy-rc.d cannot stop', async () => {
  for (const name of scripts) {
    const text = script(name);
    assert.equal((await run('dash', ['-n', join(dir, 'control', name)])).stderr, '', name);
    assert.match(text, /^#!\/bin\/sh\n(#.*\n)+set -e\n/, name);
    assert.doesNotMatch(text, /@[A-Z0-9_]+@/, name);
    assert.doesNotMatch(text, /systemctl[^\n]*\b(start|stop|restart|enable|disable)\b/, name);
    assert.doesNotMatch(text, /\[\[|\bfunction\b|\bread -p|debconf/, name);
  }
});

/** Runs a maintainer script below a folder that stands in for `/`, with stubs for every program it asks; returns what they were asked. */
async function maintain(name: (typeof scripts)[number], args: readonly string[], world: Readonly<Record<string, string>> = {}) {
  const fake = mkdtempSync(join(dir, 'world-'));
  const put = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(fake, path)), { recursive: true });
    writeFileSync(join(fake, path), text);
    chmodSync(join(fake, path), mode);
  };
  const calls = join(fake, 'calls');
  writeFileSync(calls, '');
  for (const program of ['systemctl', 'deb-systemd-helper', 'deb-systemd-invoke', 'systemd-sysusers', 'systemd-tmpfiles', 'umount'])
    put(`stubs/${program}`, `#!/bin/sh\necho "${program} $*" >>${calls}\n`, 0o755);
  put(
    'stubs/podsched',
    `#!/bin/sh\necho "podsched $*" >>${calls}\nmkdir -p ${fake}/etc/containerd\necho sandbox >>${fake}/etc/containerd/config.toml\n` +
      'echo "/etc/containerd/config.toml names ours now"\necho "WRONG  memory: off"\nexit 1\n',
    0o755,
  );
  put('usr/share/podsched/10-podsched.conflist', readFileSync(unpacked('usr/share/podsched/10-podsched.conflist'), 'utf8'));
  put('usr/bin/deb-systemd-helper', '', 0o755);
  mkdirSync(join(fake, 'run/systemd/system'), { recursive: true });
  for (const [path, text] of Object.entries(world)) put(path, text);
  put('script', script(name).replaceAll(/(?<![\w.*])\/(etc|usr|var|run)\//g, `${fake}/$1/`), 0o755);
  const { code, stdout, stderr } = await run(join(fake, 'script'), args, { env: { PATH: `${join(fake, 'stubs')}:/usr/bin:/bin` } });
  assert.equal(code, 0, stderr);
  const has = (path: string) => existsSync(join(fake, path));
  return { calls: readFileSync(calls, 'utf8').trim().split('\n').filter(Boolean), stdout, has, fake };
}

const network = 'etc/cni/net.d/10-podsched.conflist';

test('a first installation makes group and folders, a pod network, the image of sandboxes, and starts the agent', async () => {
  const { calls, has, stdout } = await maintain('postinst', ['configure', '']);
  assert.deepEqual(calls, [
    'systemd-sysusers podsched.conf',
    'systemd-tmpfiles --create podsched.conf',
    'podsched doctor --only-fix',
    'deb-systemd-invoke restart containerd.service',
    'deb-systemd-helper --quiet was-enabled podsched.service',
    'deb-systemd-helper enable podsched.service',
    'systemctl --system daemon-reload',
    'deb-systemd-invoke start podsched.service',
  ]);
  assert.ok(has(network));
  assert.match(stdout, /config\.toml names ours now/);
  assert.doesNotMatch(stdout, /WRONG/);
});

test('a node with a pod network keeps it', async () => {
  for (const theirs of ['87-podman-bridge.conflist', 'mine.conf', 'x.json']) {
    const { has } = await maintain('postinst', ['configure', ''], { [`etc/cni/net.d/${theirs}`]: '{}' });
    assert.ok(!has(network), theirs);
  }
});

test('an upgrade restarts the agent and touches neither the network nor containerd', async () => {
  const { calls, has } = await maintain('postinst', ['configure', '0.0.9']);
  assert.ok(!has(network));
  assert.equal(calls.at(-1), 'deb-systemd-invoke restart podsched.service');
  assert.ok(!calls.some((c) => c.includes('containerd') || c.startsWith('podsched')), calls.join(', '));
  assert.deepEqual((await maintain('prerm', ['upgrade', '9.9'])).calls, []);
});

test('a removal stops the agent and leaves what it knew; a purge asks nothing and takes it', async () => {
  const world = {
    'var/lib/podsched/identity': 'x',
    'etc/podsched/web.yaml': 'kind: Pod',
    [network]: readFileSync(unpacked('usr/share/podsched/10-podsched.conflist'), 'utf8'),
  };
  const removed = await maintain('prerm', ['remove'], world);
  assert.deepEqual(removed.calls, ['deb-systemd-invoke stop podsched.service']);
  assert.match(removed.stdout, /pods that run go on/);
  const left = await maintain('postrm', ['remove'], world);
  assert.ok(left.has('var/lib/podsched/identity'));
  const purged = await maintain('postrm', ['purge'], world);
  assert.ok(!purged.has('var/lib/podsched'));
  assert.ok(!purged.has(network));
  assert.ok(purged.has('etc/podsched/web.yaml'), 'manifests are their owner’s');
});

test('a purge leaves a pod network that its owner changed', async () => {
  const { has } = await maintain('postrm', ['purge'], { [network]: '{"name": "mine"}' });
  assert.ok(has(network));
});
