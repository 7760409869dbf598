/**
 * `podsched doctor`: is this machine fit to run pods? A list of checks that look and never change anything; what each finds is a sentence, and
 * what would help. A check that cannot look says so as its finding; none ends the others. The machine is judged in doctorMachine.ts and
 * doctorCni.ts, by facts that doctorFacts.ts reads.
 */
import type { RuntimeCondition, RuntimeVersion } from '../container/runtime.ts';
import { fullName } from '../images/fullName.ts';
import { ourSandboxImage } from '../images/sandboxImage.ts';
import { sizeText } from '../images/sizeText.ts';
import type { MachineParts } from '../node/systemInformation.ts';
import { describeError } from '../world/log.ts';
import { type ConfigView, readConfig } from './containerdConfig.ts';
import { cniFinding, cniSettings } from './doctorCni.ts';
import type { MachineFacts } from './doctorFacts.ts';
import { advice, type Finding, ok, wrong } from './doctorFinding.ts';
import {
  architectureFinding,
  cardFinding,
  cgroupsFinding,
  clockFinding,
  diskFinding,
  identityFinding,
  pageSizeFinding,
  powerFinding,
  writableFinding,
} from './doctorMachine.ts';

export interface DoctorDeps {
  readonly runtime: {
    version(): Promise<RuntimeVersion>;
    sandboxImage(): Promise<string | undefined>;
    status(): Promise<readonly RuntimeCondition[]>;
  };
  readonly machine: MachineFacts;
  /** What it is made of. */
  readonly parts: () => Promise<MachineParts>;
  readonly isHere: (image: string) => Promise<boolean>;
  readonly endpoint: string;
  /** containerd's configuration file. */
  readonly configFile: string;
  /** undefined: there is none. */
  readonly readConfigFile: () => Promise<string | undefined>;
  /** `20.19.0` */
  readonly nodeVersion: string;
  readonly manifests: string;
  readonly stateDir: string;
  /** Why files cannot be read from, or written into, a folder; undefined: they can. `missing`: it does not exist. */
  readonly lookAtFolder: (path: string, need: 'read' | 'write') => Promise<'missing' | string | undefined>;
}

/** One look at the machine. */
type Check = (deps: DoctorDeps, seen: Seen) => Promise<Finding>;

/** What several checks look at, read once. */
interface Seen {
  readonly config: () => Promise<ConfigView | undefined>;
  readonly version: () => Promise<string>;
}

const atLeast = (version: string, ...least: readonly number[]): boolean => {
  const parts = version
    .replace(/^v/, '')
    .split(/[.~+-]/, 3)
    .map(Number);
  for (const [i, n] of least.entries()) if ((parts[i] ?? 0) !== n) return (parts[i] ?? 0) > n;
  return true;
};

const node: Check = async ({ nodeVersion }) =>
  atLeast(nodeVersion, 20, 19)
    ? ok('node', `Node ${nodeVersion}`)
    : wrong('node', `Node ${nodeVersion} is too old: 20.19 or newer is needed`, 'Install a newer one (https://nodejs.org).');

const containerd: Check = async ({ endpoint, runtime, configFile }, { config }) => {
  try {
    const { runtimeName, runtimeVersion } = await runtime.version();
    return ok('containerd', `${runtimeName} ${runtimeVersion} answers on ${endpoint}`);
  } catch (e) {
    const disabled = (await config())?.criDisabled === true;
    return disabled
      ? wrong(
          'containerd',
          `${configFile} turns CRI off (disabled_plugins), as Docker's package does`,
          'Take "cri" out of disabled_plugins, then: systemctl restart containerd',
        )
      : wrong(
          'containerd',
          `nobody answers on ${endpoint}: ${describeError(e)}`,
          'apt-get install containerd, then: systemctl enable --now containerd. Another socket is named by containerRuntimeEndpoint.',
        );
  }
};

const fix = 'podsched doctor --fix';

const sandboxImage: Check = async ({ runtime, isHere, configFile }, { config }) => {
  const name = 'sandbox_image';
  const inFile = (await config())?.sandboxImage;
  const used = (await runtime.sandboxImage()) ?? inFile;
  if (used === undefined)
    return advice(name, `containerd does not say which image its sandboxes take, and ${configFile} does not set it`, fix);
  const here = await isHere(used);
  const ours = fullName(used) === ourSandboxImage;
  if (inFile !== undefined && fullName(inFile) !== fullName(used))
    return wrong(name, `containerd takes ${used} and its file says ${inFile}`, 'systemctl restart containerd (pods keep running)');
  if (here) return ok(name, ours ? `${used} is here, and needs no registry` : `${used} is here`);
  return ours
    ? wrong(name, `${used} is not here yet`, 'Start podsched: it brings this image.')
    : wrong(name, `${used} is not here: no pod starts before it could be pulled`, `${fix} (podsched brings an image of its own)`);
};

const syncFs: Check = async ({ configFile }, { config, version }) => {
  const name = 'image_pull_with_sync_fs';
  const found = await version();
  if (!atLeast(found, 1, 7, 14)) return ok(name, `containerd ${found} has no such setting`);
  const view = await config();
  if (view?.syncFs === true) return ok(name, 'a pulled image is on the disk before a container is made of it');
  const table = (view?.version ?? 2) >= 3 ? "[plugins.'io.containerd.cri.v1.images']" : '[plugins."io.containerd.grpc.v1.cri"]';
  return advice(
    name,
    'a power cut soon after a pull can leave an image with empty files',
    `In ${configFile}, below ${table}: image_pull_with_sync_fs = true`,
  );
};

const manifests: Check = async ({ manifests: folder, lookAtFolder }) => {
  const why = await lookAtFolder(folder, 'read');
  if (why === undefined) return ok('manifests', `${folder} can be read`);
  return wrong('manifests', why === 'missing' ? `${folder} does not exist` : `${folder} cannot be read: ${why}`, `mkdir -m 0755 ${folder}`);
};

const stateDir: Check = async ({ stateDir: folder, lookAtFolder }) => {
  const why = await lookAtFolder(folder, 'write');
  if (why === undefined) return ok('state', `${folder} can be written`);
  if (why === 'missing') return ok('state', `${folder} is made at the first start`);
  return wrong('state', `${folder} cannot be written: ${why}`, 'Is the disk mounted read-only, or full? (mount, df, dmesg)');
};

const cni: Check = async ({ machine, readConfigFile, configFile, runtime }) => {
  const settings = cniSettings(await readConfigFile());
  // a runtime that does not answer is another check's finding
  const conditions = await runtime.status().catch((): readonly RuntimeCondition[] => []);
  const network = conditions.find((c) => c.type === 'NetworkReady');
  return cniFinding({
    ...(await machine.cni(settings)),
    ...{ settings, configFile },
    network: network && { ready: network.status, message: network.message || network.reason },
  });
};

/** For whoever reads a report: nothing of it is judged. */
const hardware: Check = async ({ parts }) => {
  const { system, processor, disks } = await parts();
  const named = disks.map(({ device, name, kind, bytes }) =>
    [device, name, kind, bytes > 0 ? sizeText(bytes) : ''].filter(Boolean).join(' '),
  );
  return ok('hardware', [system, processor, ...named].filter(Boolean).join('; ') || 'the machine does not say what it is');
};

/** In the order in which they are told. */
const checks: Readonly<Record<string, Check>> = {
  hardware,
  node,
  containerd,
  sandbox_image: sandboxImage,
  image_pull_with_sync_fs: syncFs,
  cni,
  cgroups: async ({ machine }) => cgroupsFinding(await machine.cgroups()),
  architecture: async ({ machine }) => architectureFinding(await machine.architecture()),
  page_size: async ({ machine }) => pageSizeFinding(await machine.pageBytes()),
  disk: async ({ machine }) => diskFinding(await machine.disks()),
  read_only: async ({ machine }) => writableFinding(await machine.readOnly()),
  card: async ({ machine }) => cardFinding(await machine.power()),
  power: async ({ machine }) => powerFinding(await machine.power()),
  clock: async ({ machine }) => clockFinding(await machine.clock()),
  identity: async ({ machine }) => identityFinding(await machine.identity()),
  manifests,
  state: stateDir,
};

/** Every check's finding. Never rejects. */
export async function examine(deps: DoctorDeps): Promise<readonly Finding[]> {
  let config: Promise<ConfigView | undefined> | undefined;
  let version: Promise<string> | undefined;
  const seen: Seen = {
    config: () => {
      config ??= deps.readConfigFile().then((text) => (text === undefined ? undefined : readConfig(text)));
      return config;
    },
    version: () => {
      version ??= deps.runtime.version().then((v) => v.runtimeVersion);
      return version;
    },
  };
  const findings: Finding[] = [];
  for (const [name, check] of Object.entries(checks)) {
    try {
      findings.push(await check(deps, seen));
    } catch (e) {
      findings.push(advice(name, `could not be looked at: ${describeError(e)}`, 'See the other findings.'));
    }
  }
  return findings;
}
