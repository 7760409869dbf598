/** `doctor [--fix]`: looks at this machine without the agent, and repairs what can be repaired safely. */
import { execFile } from 'node:child_process';
import { configurationKeys } from '../api/configuration.ts';
import { CriRuntime } from '../cri/runtime.ts';
import { ourSandboxImage } from '../images/sandboxImage.ts';
import { fixSandboxImage } from '../operations/containerdConfigFile.ts';
import { type DoctorDeps, examine } from '../operations/doctor.ts';
import { systemDoctorDeps } from '../operations/doctorSystem.ts';
import { loadOptions } from '../options.ts';
import { silentLog } from '../world/log.ts';
import { harmless } from '../world/terminal.ts';
import { defaultConfigFile, readConfigFile } from './configFile.ts';
import { exitCodes } from './exitCodes.ts';
import { printFindings } from './findings.ts';
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

/** 0: nothing is wrong (advice apart); with `onlyFix`: nothing is left to a person. */
export async function doctor(o: DoctorOptions, print: Printer): Promise<number> {
  if (o.onlyFix === true) return (await fix(o, print)) ? exitCodes.done : exitCodes.failed;
  if (o.fix === true) await fix(o, print);
  return printFindings(await withMachine(o, examine), print);
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
  try {
    return await look(
      await systemDoctorDeps({
        runtime,
        isHere: async (image) => (await runtime.images.imageStatus(image)) !== undefined,
        endpoint,
        containerdConfig: o.containerdConfig,
        manifests: setting('staticPodPath'),
        stateDir: setting('stateDir'),
        podLogsDir: setting('podLogsDir'),
      }),
    );
  } finally {
    runtime.close();
  }
}
