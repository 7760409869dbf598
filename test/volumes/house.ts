/** A VolumeManager on a real folder, with real mounts, and a way to take everything down again. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Container, ObjectMeta, PodSpec } from '../../src/api/v1.ts';
import { VolumeManager, type VolumeManagerDeps } from '../../src/volumes/manager.ts';
import { parseMountPoints, systemMounter } from '../../src/volumes/mount.ts';
import type { ResolvWords } from '../../src/volumes/resolv.ts';
import type { Log } from '../../src/world/log.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

const made: string[] = [];
after(() => {
  for (const dir of made) removeFolder(dir);
});

/** A folder of this test, gone at its end with everything mounted below it. */
export function folder(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'podsched-volumes-')));
  // containers of other users come through it
  chmodSync(dir, 0o755);
  made.push(dir);
  return dir;
}

export const mountsUnder = (dir: string): string[] =>
  parseMountPoints(readFileSync('/proc/self/mountinfo', 'utf8'))
    .filter((p) => p.startsWith(`${dir}/`))
    .map((p) => relative(dir, p));

function removeFolder(dir: string): void {
  for (const point of mountsUnder(dir).reverse()) execFileSync('umount', [join(dir, point)]);
  rmSync(dir, { recursive: true, force: true });
}

export const container = (name: string, o: Partial<Container> = {}): Container => ({ name, image: 'localhost/busybox:1', ...o });

/** `web` in `default` with the uid `uid-1` and one container `c`. */
export const pod = (spec: Partial<PodSpec>, o: { readonly uid?: string; readonly metadata?: Partial<ObjectMeta> } = {}): DesiredPod =>
  toDesiredPod(
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', ...o.metadata }, spec: { containers: [container('c')], ...spec } },
    { uid: (o.uid ?? 'uid-1') as PodUid, source: 'file:web.yaml', nodeName: 'pi', firstSeen: '2026-01-01T00:00:00Z' },
  );

/** A pod that mounts each volume at `/<name>`. */
export const podWith = (volumes: NonNullable<PodSpec['volumes']>, o: Partial<PodSpec> = {}): DesiredPod =>
  pod({ volumes, containers: [container('c', { volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })) })], ...o });

export const first = (desired: DesiredPod): Container => {
  const [one] = desired.pod.spec.containers;
  if (one === undefined) throw new Error('no container');
  return one;
};

export class House {
  readonly dir = folder();
  readonly podsDir = join(this.dir, 'pods');
  readonly clock = new FakeClock();
  readonly warnings: string[] = [];
  dns: ResolvWords = { servers: ['192.0.2.1'], searches: ['lan'], options: ['ndots:5'] };
  readonly log: Log = {
    debug() {},
    info() {},
    warn: (nouns, sentence) => this.warnings.push(`${sentence}: ${JSON.stringify(nouns)}`),
    error: (nouns, sentence) => this.warnings.push(`${sentence}: ${JSON.stringify(nouns)}`),
    child: () => this.log,
  };
  manager = this.newAgent();

  /** Another agent on the same folder. */
  newAgent(o: Partial<VolumeManagerDeps> = {}): VolumeManager {
    this.manager = new VolumeManager({
      clock: this.clock,
      log: this.log,
      podsDir: this.podsDir,
      mounter: systemMounter,
      nodeMemoryBytes: 1 << 30,
      dnsOf: () => this.dns,
      hostsFile: join(this.dir, 'node-hosts'),
      recursiveReadOnly: () => false,
      ...o,
    });
    return this.manager;
  }

  path(...parts: string[]): string {
    return join(this.podsDir, 'uid-1', ...parts);
  }

  emptyDir(name: string, ...parts: string[]): string {
    return this.path('volumes/kubernetes.io~empty-dir', name, ...parts);
  }

  read(...parts: string[]): string {
    return readFileSync(this.path(...parts), 'utf8');
  }
}

export const mode = (path: string): string => (statSync(path).mode & 0o7777).toString(8);

/** Every path below with its times and inode: what differs was written or made anew. */
export function snapshot(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => {
      const { ino, mtimeNs, ctimeNs } = statSync(join(dir, name), { bigint: true });
      return `${name} ${ino} ${mtimeNs} ${ctimeNs}`;
    })
    .sort();
}

/**
 * A process that makes a link to `outside` of the folder `path`, and the folder again, as long as it lives, each for a while. What somebody
 * makes there in between goes.
 */
export function swapForLinks(path: string, hidden: string, outside: string): ChildProcess {
  const script = `const fs = require('fs');
    const rest = () => { const end = process.hrtime.bigint() + 300000n; while (process.hrtime.bigint() < end); };
    for (;;) {
      try { fs.renameSync(${JSON.stringify(path)}, ${JSON.stringify(hidden)}); fs.symlinkSync(${JSON.stringify(outside)}, ${JSON.stringify(path)}); rest(); } catch {}
      try { fs.rmSync(${JSON.stringify(path)}, { recursive: true, force: true }); fs.renameSync(${JSON.stringify(hidden)}, ${JSON.stringify(path)}); rest(); } catch {}
    }`;
  return spawn(process.execPath, ['-e', script], { stdio: 'ignore' });
}
