/** The program in the image of sandboxes: that it is made of its source, waits, ends on a signal, and reaps as PID 1. On all three machines. */
import assert from 'node:assert/strict';
import { execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { pauseArchive, pauseCompilers } from '../../src/images/pauseArchive.ts';
import { ourSandboxImage } from '../../src/images/sandboxImage.ts';
import { until } from '../until.ts';

const source = new URL('../../bundle/pause/', import.meta.url).pathname;
const work = mkdtempSync(join(tmpdir(), 'podsched-pause-'));
after(() => rmSync(work, { recursive: true, force: true }));

interface Descriptor {
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string; readonly variant?: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

const shipped = join(work, 'shipped');
mkdirSync(shipped);
writeFileSync(join(work, 'pause.tar'), gunzipSync(Buffer.from(pauseArchive, 'base64')));
execFileSync('tar', ['-C', shipped, '-xf', join(work, 'pause.tar')]);
const json = <T>(file: string): T => JSON.parse(readFileSync(file, 'utf8')) as T;
const blobFile = ({ digest, size }: Descriptor): string => {
  const file = join(shipped, 'blobs', digest.replace(':', '/'));
  const bytes = readFileSync(file);
  assert.equal(`sha256:${createHash('sha256').update(bytes).digest('hex')}`, digest);
  assert.equal(bytes.length, size);
  return file;
};
const [top] = json<{ manifests: Descriptor[] }>(join(shipped, 'index.json')).manifests;
assert.ok(top);
const images = json<{ manifests: Descriptor[] }>(blobFile(top)).manifests.map((m) => {
  const { config, layers } = json<{ config: Descriptor; layers: [Descriptor] }>(blobFile(m));
  const dir = join(work, m.platform?.architecture ?? '');
  mkdirSync(dir);
  execFileSync('tar', ['-C', dir, '-xf', blobFile(layers[0])]);
  return { platform: m.platform, config: blobFile(config), layer: layers[0].digest, program: join(dir, 'pause') };
});

const built = join(work, 'built');
mkdirSync(built);
execFileSync('sh', [join(source, 'build.sh'), built]);
const compilers = readFileSync(join(built, 'compilers'), 'utf8').trim();

test('the image in the program is what the compilers make of pause.c, byte by byte, and twice the same', () => {
  const again = join(work, 'again');
  mkdirSync(again);
  execFileSync('sh', [join(source, 'build.sh'), again]);
  const pack = (folder: string) => execFileSync('node', [join(source, 'archive.mjs'), folder, '--print']);
  assert.ok(pack(built).equals(pack(again)));
  // other compilers give other bytes; what they make is run below like ours
  if (compilers === pauseCompilers) assert.ok(pack(built).equals(readFileSync(join(work, 'pause.tar'))), 'run bundle/pause/archive.mjs');
  else assert.notEqual(compilers, '');
});

test('it is one image by our name for three platforms, each a single file far below 20 KB, run by nobody in particular', () => {
  assert.equal(top.annotations?.['io.containerd.image.name'], ourSandboxImage);
  assert.deepEqual(
    images.map((i) => [i.platform?.os, i.platform?.architecture, i.platform?.variant].filter((x) => x !== undefined).join('/')),
    ['linux/arm64', 'linux/arm/v7', 'linux/amd64'],
  );
  for (const { config, layer, program, platform } of images) {
    const { architecture, os, config: runs, rootfs } = json<Record<string, never>>(config) as Record<string, Record<string, unknown>>;
    assert.deepEqual([os, architecture], [platform?.os, platform?.architecture]);
    assert.deepEqual(runs, { User: '65535:65535', Entrypoint: ['/pause'], WorkingDir: '/' });
    assert.deepEqual(rootfs?.diff_ids, [layer]);
    assert.deepEqual(readdirSync(join(program, '..')), ['pause']);
    assert.ok(statSync(program).size < 2048, `${program}: ${statSync(program).size} bytes`);
    assert.equal(statSync(program).mode & 0o777, 0o755);
  }
});

test('it is loaded whole on pages of 64 KiB, with no segment that can be written and run', () => {
  for (const { program } of images) {
    const segments = execFileSync('readelf', ['-lW', program], { encoding: 'utf8' }).split('\n');
    const loads = segments.filter((l) => /^ +LOAD /.test(l));
    assert.equal(loads.length, 1, program);
    assert.match(loads[0] ?? '', / R E 0x10000$/);
    assert.ok(segments.some((l) => /GNU_STACK.* RW +0x/.test(l)));
  }
});

const nativeNames: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', arm: 'arm' };
const emulators: Readonly<Record<string, string>> = { amd64: 'qemu-x86_64', arm64: 'qemu-aarch64', arm: 'qemu-arm' };
const emulatorOf = (name: string): string[] => (nativeNames[process.arch] === name ? [] : [emulators[name] ?? '']);

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const quiet: SpawnOptions = { stdio: 'ignore' };

/** pid → its parent and state, of the whole machine. */
function processes(): Map<number, { readonly parent: number; readonly state: string }> {
  const found = new Map<number, { parent: number; state: string }>();
  for (const pid of readdirSync('/proc').map(Number).filter(Boolean)) {
    try {
      const [state = '', parent = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ');
      found.set(pid, { state, parent: Number(parent) });
    } catch {
      // it ended meanwhile
    }
  }
  return found;
}

const childrenOf = (pid: number): { readonly pid: number; readonly state: string }[] =>
  [...processes()].filter(([, p]) => p.parent === pid).map(([child, { state }]) => ({ pid: child, state }));

/** By the system call that it is in, which an emulator makes for it: until it is in it, a signal ends it in another way. */
const waitCalls: Readonly<Record<string, readonly string[]>> = { x64: ['128'], arm64: ['137'], arm: ['177', '421'] };
const waitsForSignals = (pid: number): boolean =>
  waitCalls[process.arch]?.includes(readFileSync(`/proc/${pid}/syscall`, 'utf8').split(' ')[0] ?? '') === true;

/** A command as PID 1 of a process namespace, and three orphans that end. `left`: the states of those that stay. */
async function orphansUnder(command: readonly string[], left: string, isReady: (pid: number) => boolean): Promise<void> {
  const outside = spawn('unshare', ['--pid', '--fork', '--kill-child', ...command], quiet);
  try {
    let init = 0;
    await until('it runs', () => {
      const [child] = childrenOf(outside.pid ?? 0);
      if (child === undefined) return false;
      init = child.pid;
      const name = readFileSync(`/proc/${init}/cmdline`, 'utf8').split('\0')[0];
      return name !== '' && name !== 'unshare' && isReady(init);
    });
    for (let i = 0; i < 3; i++) execFileSync('nsenter', ['-t', String(init), '-p', 'sh', '-c', 'sleep 1000 & exit 0'], { stdio: 'ignore' });
    await until('the orphans are its children', () => childrenOf(init).length === 3);
    for (const { pid } of childrenOf(init)) process.kill(pid, 'SIGKILL');
    const states = () =>
      childrenOf(init)
        .map((p) => p.state)
        .join('');
    await until(`of the orphans is left: "${left}"`, () => states() === left);
    await pause(200);
    assert.equal(states(), left);
    assert.ok(processes().has(init), 'it still runs');
  } finally {
    outside.kill('SIGKILL');
  }
}

test('a program that does not reap leaves zombies, so that the next test can fail', async () => {
  await orphansUnder(['sleep', '1000'], 'ZZZ', () => true);
});

const programs = [
  ...images.map((i) => ({ name: i.platform?.architecture ?? '', file: i.program, of: 'in the image' })),
  ...['arm64', 'arm', 'amd64'].map((name) => ({ name, file: join(built, `pause-${name}`), of: `of ${compilers}` })),
];
for (const { name, file, of } of compilers === pauseCompilers ? programs.slice(0, 3) : programs) {
  test(`${name} ${of}: it waits without using the processor, and ends with 0 on TERM and INT`, async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const [command = file, ...args] = [...emulatorOf(name), file];
      const child = spawn(command, args, quiet);
      const ended = new Promise((resolve) => child.once('exit', (code, by) => resolve([code, by])));
      const { pid } = child;
      assert.ok(pid !== undefined, 'it can be started');
      await until('it waits', () => child.exitCode === null && waitsForSignals(pid));
      const ticks = () =>
        readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /, '')
          .split(' ')
          .slice(11, 13)
          .map(Number);
      const before = ticks();
      await pause(200);
      assert.deepEqual(ticks(), before);
      child.kill(signal);
      assert.deepEqual(await ended, [0, null]);
    }
  });

  test(`${name} ${of}: as PID 1 of a pod's processes it reaps every orphan`, async () => {
    await orphansUnder([...emulatorOf(name), file], '', waitsForSignals);
  });
}
