/** `doctor [--fix]`: looks at this machine without the agent, and repairs what can be repaired safely. */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { machine } from 'node:os';
import { configurationKeys } from '../api/configuration.ts';
import { CriRuntime } from '../cri/runtime.ts';
import { ourSandboxImage } from '../images/sandboxImage.ts';
import { machineParts } from '../node/systemInformation.ts';
import { dataRoot } from '../operations/containerdConfig.ts';
import { fixSandboxImage, readConfigFile as readContainerdConfig } from '../operations/containerdConfigFile.ts';
import { type DoctorDeps, examine } from '../operations/doctor.ts';
import { systemMachineFacts } from '../operations/doctorFacts.ts';
import type { Finding } from '../operations/doctorFinding.ts';
import { loadOptions } from '../options.ts';
import { codeOf } from '../world/errno.ts';
import { silentLog } from '../world/log.ts';
import { harmless } from '../world/terminal.ts';
import { defaultConfigFile, readConfigFile } from './configFile.ts';
import { exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';

export interface DoctorOptions {
  /** podsched.yaml. */
  readonly config?: string;
  readonly containerdConfig: string;
  readonly containerRuntimeEndpoint?: string;
  readonly fix?: true;
  /** As `fix`, and nothing is looked at. */
  readonly onlyFix?: true;
  /** With either: containerd is restarted when its file was changed. */
  readonly restart?: true;
}

const signs: Readonly<Record<Finding['level'], string>> = { ok: 'ok     ', advice: 'advice ', wrong: 'WRONG  ' };

/** 0: nothing is wrong (advice apart); with `onlyFix`: nothing is left to a person. */
export async function doctor(o: DoctorOptions, print: Printer): Promise<number> {
  if (o.onlyFix === true) return (await fix(o, print)) ? exitCodes.done : exitCodes.failed;
  if (o.fix === true) await fix(o, print);
  const findings = await withMachine(o, examine);
  for (const { name, level, message, remedy } of findings) {
    print.out(`${signs[level]}${name}: ${harmless(message)}\n`);
    if (level !== 'ok' && remedy !== undefined) print.out(`       ${harmless(remedy)}\n`);
  }
  return findings.some((f) => f.level === 'wrong') ? exitCodes.failed : exitCodes.done;
}

/** False: a person must do it. */
async function fix(o: DoctorOptions, print: Printer): Promise<boolean> {
  const file = o.containerdConfig;
  const result = await fixSandboxImage(file, ourSandboxImage);
  switch (result.done) {
    case 'already':
      print.out(`${file} names ${ourSandboxImage} already\n`);
      return true;
    case 'refused':
      print.err(
        `${file} is left as it is: ${harmless(result.why)}. Please add:\n\n${result.lines.join('\n')}\n\nand: systemctl restart containerd\n`,
      );
      return false;
    case 'changed': {
      const kept = result.backup === undefined ? '' : `; what was there is in ${result.backup}`;
      print.out(`${result.file} names ${ourSandboxImage} now${kept}\n`);
      if (o.restart !== true) print.out('Now: systemctl restart containerd (pods keep running)\n');
      else print.out(`${await restartContainerd()}\n`);
      return true;
    }
    default: {
      const never: never = result;
      return never;
    }
  }
}

const restartContainerd = (): Promise<string> =>
  new Promise((resolve) => {
    execFile('systemctl', ['restart', 'containerd'], { timeout: 60_000 }, (e, _, err) =>
      resolve(e === null ? 'containerd was restarted' : `containerd could not be restarted: ${harmless(err.trim() || e.message)}`),
    );
  });

/** The machine as podsched.yaml describes it. */
async function withMachine<T>(o: DoctorOptions, look: (deps: DoctorDeps) => Promise<T>): Promise<T> {
  const read = await readConfigFile(o.config ?? defaultConfigFile);
  const settings = read.ok && read.file !== undefined ? loadOptions({ flags: {}, env: {}, file: read.file }).fileSettings : {};
  const setting = (key: string): string => String(settings[key] ?? configurationKeys[key]?.default);
  const endpoint = o.containerRuntimeEndpoint ?? setting('containerRuntimeEndpoint');
  const runtime = new CriRuntime({ endpoint, requestTimeoutMs: 5000, log: silentLog });
  const stateDir = setting('stateDir');
  // another check says what is wrong with the file
  const containerdText = await readContainerdConfig(o.containerdConfig).catch(() => undefined);
  try {
    return await look({
      runtime,
      isHere: async (image) => (await runtime.images.imageStatus(image)) !== undefined,
      endpoint,
      configFile: o.containerdConfig,
      readConfigFile: () => readContainerdConfig(o.containerdConfig),
      nodeVersion: process.versions.node,
      parts: machineParts,
      manifests: setting('staticPodPath'),
      stateDir,
      lookAtFolder,
      machine: systemMachineFacts({
        roots: { proc: '/proc', sys: '/sys', etc: '/etc', run: '/run', boot: '/boot', lib: '/usr/lib', cgroups: '/sys/fs/cgroup' },
        folders: [
          { path: stateDir, use: 'state and volumes' },
          { path: setting('podLogsDir'), use: 'logs' },
          { path: dataRoot(containerdText ?? ''), use: 'images' },
        ],
        stateDir,
        now: () => Date.now(),
        timeSynced,
        machine: machine(),
        agent: process.arch,
        asRoot: process.getuid?.() === 0,
      }),
    });
  } finally {
    runtime.close();
  }
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
