/** What the doctor goes by on a real machine: the runtime, the folders and files, and the kernel's word. Owns nothing and changes nothing. */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { machine } from 'node:os';
import type { Runtime } from '../container/runtime.ts';
import { machineParts } from '../node/systemInformation.ts';
import { codeOf } from '../world/errno.ts';
import { dataRoot } from './containerdConfig.ts';
import { readConfigFile } from './containerdConfigFile.ts';
import type { DoctorDeps } from './doctor.ts';
import { systemMachineFacts } from './doctorFacts.ts';

export interface SystemDoctor {
  readonly runtime: Pick<Runtime, 'version' | 'sandboxImage' | 'status'>;
  readonly isHere: DoctorDeps['isHere'];
  readonly endpoint: string;
  /** containerd's configuration file. */
  readonly containerdConfig: string;
  readonly manifests: string;
  readonly stateDir: string;
  readonly podLogsDir: string;
}

/** Reads containerd's file at once, the rest when a check asks. Never rejects. */
export async function systemDoctorDeps(o: SystemDoctor): Promise<DoctorDeps> {
  const { containerdConfig: configFile, stateDir } = o;
  // another check says what is wrong with the file
  const containerdText = await readConfigFile(configFile).catch(() => undefined);
  return {
    ...{ runtime: o.runtime, isHere: o.isHere, endpoint: o.endpoint, configFile, manifests: o.manifests, stateDir, lookAtFolder },
    readConfigFile: () => readConfigFile(configFile),
    nodeVersion: process.versions.node,
    parts: machineParts,
    machine: systemMachineFacts({
      roots: { proc: '/proc', sys: '/sys', etc: '/etc', run: '/run', boot: '/boot', lib: '/usr/lib', cgroups: '/sys/fs/cgroup' },
      folders: [
        { path: stateDir, use: 'state and volumes' },
        { path: o.podLogsDir, use: 'logs' },
        { path: dataRoot(containerdText ?? ''), use: 'images' },
      ],
      stateDir,
      now: () => Date.now(),
      timeSynced,
      machine: machine(),
      agent: process.arch,
      asRoot: process.getuid?.() === 0,
    }),
  };
}

async function lookAtFolder(path: string, need: 'read' | 'write'): Promise<string | undefined> {
  try {
    if (!(await stat(path)).isDirectory()) return 'it is no folder';
    await access(path, need === 'read' ? constants.R_OK | constants.X_OK : constants.W_OK | constants.X_OK);
    return undefined;
  } catch (e) {
    return codeOf(e) === 'ENOENT' ? 'missing' : codeOf(e);
  }
}

const askMs = 3000;

/** The kernel's own word, whichever program keeps the clock; a machine without systemd does not say. */
const timeSynced = (): Promise<boolean | undefined> =>
  new Promise((resolve) => {
    const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
    execFile('timedatectl', ['show', '--property=NTPSynchronized', '--value'], { timeout: askMs, env }, (e, stdout) =>
      resolve(e === null && /^(yes|no)$/.test(stdout.trim()) ? stdout.trim() === 'yes' : undefined),
    );
  });
