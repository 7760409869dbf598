/** Taking a bed down: what is the bed's own goes at once, what beds share goes with the last of them. Each step copes with a half-made bed. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bedPaths } from './containerd.ts';
import { killPid, mustRun, processes, run, until } from './process.ts';
import { type BedRecord, cniChains, ipForwardFile, kubepodsTrees, leave, locked, sharedFolders } from './registry.ts';

/** The shims that serve this bed's containerd: they name its socket in their arguments. */
export function shims(socket: string): number[] {
  return processes()
    .filter(({ argv }) => /containerd-shim-runc-v2$/.test(argv[0] ?? '') && argv.includes(socket))
    .map((p) => p.pid);
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return []; // ended while we looked
  }
}

/** Ends what StopPodSandbox left: first the containers under each shim, then the shim. */
export async function killShims(socket: string): Promise<void> {
  const left = shims(socket);
  for (const shim of left) {
    for (const child of childrenOf(shim)) killPid(child, 'SIGKILL');
  }
  if (left.length > 0)
    await until('shims to see their containers end', 2_000, () => shims(socket).every((s) => childrenOf(s).length === 0)).catch(() => {});
  for (const shim of shims(socket)) killPid(shim, 'SIGKILL');
  await until('shims to end', 30_000, () => shims(socket).length === 0);
}

/** Mount points under `dir`, deepest first. */
export function mountsUnder(dir: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .flatMap((line) => line.split(' ')[4] ?? [])
    .map((path) => path.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))))
    .filter((path) => path === dir || path.startsWith(`${dir}/`))
    .reverse();
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // not empty, busy or gone: then it is not ours to remove
  }
}

/** Removes the cgroups of the bed's pods in every hierarchy, with the folders of their dead containers. Never one that has a process. */
function removePodCgroups(parents: readonly string[]): void {
  const roots = ['/sys/fs/cgroup', ...readdirSync('/sys/fs/cgroup').map((name) => join('/sys/fs/cgroup', name))];
  for (const path of roots.flatMap((root) => parents.map((p) => join(root, p)))) {
    if (!existsSync(path)) continue;
    for (const entry of readdirSync(path, { withFileTypes: true })) if (entry.isDirectory()) removeEmpty(join(path, entry.name));
    removeEmpty(path);
  }
}

/** Firewall rules and chains that CNI made for this bed's network and did not take back. */
async function removeFirewallRules(network: string): Promise<void> {
  const { stdout } = await run('iptables', ['-w', '10', '-t', 'nat', '-S']);
  const chains = new Set<string>();
  for (const line of stdout.split('\n')) {
    if (!line.startsWith('-A ') || !line.includes(`name: \\"${network}\\"`)) continue;
    const words = line.match(/"(?:\\.|[^"])*"|\S+/g)?.map((w) => w.replace(/^"(.*)"$/, '$1').replaceAll('\\"', '"')) ?? [];
    const target = words[words.indexOf('-j') + 1] ?? '';
    if (target.startsWith('CNI-') && !target.startsWith('CNI-HOSTPORT')) chains.add(target);
    await run('iptables', ['-w', '10', '-t', 'nat', '-D', ...words.slice(1)]);
  }
  for (const chain of chains) {
    await run('iptables', ['-w', '10', '-t', 'nat', '-F', chain]);
    await run('iptables', ['-w', '10', '-t', 'nat', '-X', chain]);
  }
}

/** The chains that port mapping shares between networks; only for the last bed, and only those that came with beds. */
async function removeSharedChains(before: readonly string[]): Promise<void> {
  const shared = (await cniChains()).filter((c) => c.startsWith('CNI-HOSTPORT-') && !before.includes(c));
  if (shared.length === 0) return;
  const { stdout } = await run('iptables', ['-w', '10', '-t', 'nat', '-S']);
  for (const line of stdout.split('\n')) {
    if (!line.startsWith('-A ') || !shared.some((c) => line.endsWith(`-j ${c}`) || line.startsWith(`-A ${c} `))) continue;
    const words = line.match(/"(?:\\.|[^"])*"|\S+/g)?.map((w) => w.replace(/^"(.*)"$/, '$1').replaceAll('\\"', '"')) ?? [];
    await run('iptables', ['-w', '10', '-t', 'nat', '-D', ...words.slice(1)]);
  }
  for (const chain of shared) await run('iptables', ['-w', '10', '-t', 'nat', '-X', chain]);
}

/** The sockets of this bed's shims: named after containerd's address, namespace and container. */
function removeShimSockets(socket: string, ids: readonly string[]): void {
  for (const id of ids) {
    const name = createHash('sha256')
      .update(join(socket, 'k8s.io', id))
      .digest('hex');
    rmSync(`/run/containerd/s/${name}`, { force: true });
  }
}

/**
 * Removes everything of a bed whose sandboxes were stopped and whose containerd has ended; both are forced if they were not.
 * `parents` are the cgroups of its pods, `ids` its sandboxes.
 */
export async function removeBed(record: BedRecord, parents: readonly string[], ids: readonly string[]): Promise<void> {
  const paths = bedPaths(record.dir);
  for (const p of processes()) if (p.argv[0]?.endsWith('containerd') === true && p.argv.includes(paths.config)) killPid(p.pid, 'SIGKILL');
  await killShims(paths.socket);
  for (const mount of mountsUnder(record.dir)) await run('umount', ['-l', mount]);
  removePodCgroups(parents);
  if (existsSync(`/sys/class/net/${record.bridge}`)) await mustRun('ip', ['link', 'delete', record.bridge]);
  await removeFirewallRules(record.network);
  removeShimSockets(paths.socket, ids);
  for (const file of existsSync('/var/lib/cni/results') ? readdirSync('/var/lib/cni/results') : []) {
    if (file.startsWith(`${record.network}-`)) rmSync(join('/var/lib/cni/results', file), { force: true });
  }
  rmSync(record.dir, { recursive: true, force: true, maxRetries: 5 });
  await locked(async () => {
    const before = leave(record.name);
    if (before === undefined) return;
    for (const tree of kubepodsTrees()) if (!before.kubepods.includes(tree)) removeEmpty(tree);
    await removeSharedChains(before.chains);
    for (const folder of sharedFolders) if (!before.folders.includes(folder)) removeEmpty(folder);
    if (before.ipForward === '0') writeFileSync(ipForwardFile, '0');
  });
}
