// deb.mjs [FOLDER]: packs bundle/podsched.cjs as FOLDER/podsched_<version>_all.deb (default: bundle/) with dpkg-deb. The same tree gives the
// same bytes: all times are SOURCE_DATE_EPOCH's, else the last commit's, else 0. DEB_VERSION takes the place of package.json's version.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';

const top = new URL('..', import.meta.url).pathname;
const at = (path) => join(top, path);
const { version, description } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
/** `1.0.0-rc.1` is older than `1.0.0`: Debian says that with a tilde. */
const debVersion = process.env.DEB_VERSION ?? version.replace('-', '~');
const out = resolve(process.argv[2] ?? at('bundle'));
const maintainer = 'podsched <podsched@localhost>';

/** Files of the package: where from, where to. Programs are 0755, all others 0644. */
const files = {
  'bundle/podsched.cjs': 'usr/lib/podsched/podsched.cjs',
  'systemd/podsched': 'usr/bin/podsched',
  'systemd/podsched.service': 'usr/lib/systemd/system/podsched.service',
  'systemd/sysusers.d/podsched.conf': 'usr/lib/sysusers.d/podsched.conf',
  'systemd/tmpfiles.d/podsched.conf': 'usr/lib/tmpfiles.d/podsched.conf',
  'systemd/10-podsched.conflist': 'usr/share/podsched/10-podsched.conflist',
  'bundle/deb/podsched.yaml': 'etc/podsched/podsched.yaml',
  'README.md': 'usr/share/doc/podsched/README.md',
  'CHANGELOG.md': 'usr/share/doc/podsched/CHANGELOG.md',
  'docs/configuration.md': 'usr/share/doc/podsched/configuration.md',
  'docs/mqtt.md': 'usr/share/doc/podsched/mqtt.md',
  'docs/fields.md': 'usr/share/doc/podsched/fields.md',
  'docs/reasons.md': 'usr/share/doc/podsched/reasons.md',
};
const programs = ['usr/bin/podsched', 'usr/lib/podsched/podsched.cjs'];
const conffiles = ['etc/podsched/podsched.yaml'];

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

function epoch() {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given !== undefined && /^\d+$/.test(given)) return Number(given);
  try {
    return (
      Number(execFileSync('git', ['-C', top, 'log', '-1', '--format=%ct'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })) || 0
    );
  } catch {
    return 0; // no clone
  }
}

/** Packages that are inside of the bundle, with the licence each of them comes with. */
function bundled() {
  const meta = JSON.parse(readFileSync(at('bundle/meta.json'), 'utf8'));
  const [output] = Object.values(meta.outputs);
  const folders = Object.entries(output.inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .flatMap(([file]) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  return [...new Set(folders)].sort().map((folder) => {
    const info = JSON.parse(readFileSync(at(join(folder, 'package.json')), 'utf8'));
    const text = readdirSync(at(folder))
      .sort()
      .find((name) => /^licen[cs]e/i.test(name) && statSync(at(join(folder, name))).isFile());
    return {
      name: info.name,
      version: info.version,
      license: String(info.license ?? 'see its text'),
      text: text && readFileSync(at(join(folder, text)), 'utf8'),
    };
  });
}

function copyright() {
  const indented = (text) =>
    text
      .trimEnd()
      .split(/\r?\n/)
      .map((line) => (line.trim() === '' ? ' .' : ` ${line}`))
      .join('\n');
  const parts = bundled().map(
    ({ name, version: v, license, text }) =>
      `Files: usr/lib/podsched/podsched.cjs\nComment: ${name} ${v} is a part of this file\nCopyright: see the text\nLicense: ${license}\n${indented(text ?? `As ${name} says: ${license}.`)}\n`,
  );
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: podsched

Files: *
Copyright: the podsched authors
License: Apache-2.0
 On Debian systems the text of this licence is in /usr/share/common-licenses/Apache-2.0.

${parts.join('\n')}`;
}

const changelog = (time) => `podsched (${debVersion}) unstable; urgency=medium

  * What changed is in /usr/share/doc/podsched/CHANGELOG.md.

 -- ${maintainer}  ${new Date(time * 1000).toUTCString().replace('GMT', '+0000')}
`;

const control = (installedKiB) => `Package: podsched
Version: ${debVersion}
Section: admin
Priority: optional
Architecture: all
Maintainer: ${maintainer}
Installed-Size: ${installedKiB}
Depends: nodejs (>= 20.19~), containerd | containerd.io, containernetworking-plugins, systemd
Recommends: zstd
Suggests: mosquitto-clients
Description: ${description.split(':')[0]}
 A folder of Pod manifests is run on containerd, and what becomes of each pod is
 told over MQTT. The kubelet's way of running pods, without an API server, for
 machines that lose their power, their network and their clock.
`;

/** Every path below `folder`, deepest last. */
const walk = (folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();

function put(root, path, bytes, mode = 0o644) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), bytes);
  chmodSync(join(root, path), mode);
}

if (!existsSync(at('bundle/podsched.cjs'))) {
  console.error('bundle/podsched.cjs is not there: npm run build');
  process.exit(1);
}
const time = epoch();
const root = mkdtempSync(join(tmpdir(), 'podsched-deb-'));
try {
  for (const [from, to] of Object.entries(files)) put(root, to, readFileSync(at(from)), programs.includes(to) ? 0o755 : 0o644);
  cpSync(at('manifests'), join(root, 'usr/share/doc/podsched/examples'), { recursive: true });
  cpSync(at('docs/mosquitto'), join(root, 'usr/share/doc/podsched/mosquitto'), { recursive: true });
  put(root, 'usr/share/doc/podsched/copyright', copyright());
  put(root, 'usr/share/doc/podsched/changelog.gz', gzipSync(changelog(time), { level: 9 }));
  const content = walk(root).filter((path) => statSync(join(root, path)).isFile());
  const kib = content.reduce((sum, path) => sum + Math.ceil(statSync(join(root, path)).size / 1024), 0);
  const md5 = (path) =>
    createHash('md5')
      .update(readFileSync(join(root, path)))
      .digest('hex');
  put(
    root,
    'DEBIAN/md5sums',
    content
      .filter((path) => !conffiles.includes(path))
      .map((path) => `${md5(path)}  ${path}\n`)
      .join(''),
  );
  put(root, 'DEBIAN/conffiles', conffiles.map((path) => `/${path}\n`).join(''));
  put(root, 'DEBIAN/control', control(kib));
  const network = sha256(readFileSync(at('systemd/10-podsched.conflist')));
  for (const script of ['postinst', 'prerm', 'postrm'])
    put(root, `DEBIAN/${script}`, readFileSync(at(`bundle/deb/${script}`), 'utf8').replaceAll('@NETWORK_SHA256@', network), 0o755);
  // modes and times are those of the package, whatever umask and clock this machine has
  chmodSync(root, 0o755);
  for (const path of walk(root)) {
    const whole = join(root, path);
    if (statSync(whole).isDirectory()) chmodSync(whole, 0o755);
    else if (path.startsWith('usr/share/doc/podsched/examples/')) chmodSync(whole, 0o644);
  }
  for (const path of ['', ...walk(root)].reverse()) lutimesSync(join(root, path), time, time);
  mkdirSync(out, { recursive: true });
  const deb = join(out, `podsched_${debVersion}_all.deb`);
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', root, deb], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(time) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const shown = relative(process.cwd(), deb);
  console.log(`${shown.startsWith('..') ? deb : shown}: ${Math.round(statSync(deb).size / 1000)} kB (apt install ./${shown})`);
} finally {
  rmSync(root, { recursive: true, force: true });
}
