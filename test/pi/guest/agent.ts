/** The agent as its user meets it: the manifest folder, the local socket, the commands. */
import { existsSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { type Ran, ran, readIf, run, unit, until, write } from './machine.ts';

const socket = '/run/podsched/podsched.sock';
export const manifests = '/etc/podsched';

export interface State {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: { readonly startedAt?: string };
  readonly terminated?: { readonly reason?: string; readonly exitCode: number; readonly message?: string };
}
export interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly containerID?: string;
  readonly state?: State;
  readonly lastState?: State;
}
export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}
export interface Pod {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly message?: string;
    readonly qosClass?: string;
    readonly startTime?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}
export interface Sync {
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly phase: string;
  readonly reason?: string;
  readonly message?: string;
}
export interface Event {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly involvedObject: { readonly kind?: string; readonly name?: string; readonly fieldPath?: string };
}

export interface Node {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly status: {
    readonly capacity?: Readonly<Record<string, string>>;
    readonly allocatable?: Readonly<Record<string, string>>;
    readonly addresses: readonly { readonly type: string; readonly address: string }[];
    readonly conditions: readonly (Condition & { readonly lastTransitionTime?: string; readonly lastHeartbeatTime?: string })[];
    readonly nodeInfo: Readonly<Record<string, string>>;
    readonly images?: readonly { readonly names: readonly string[]; readonly sizeBytes: number }[];
  };
}

/** GET on the local API: the text of a 200. */
function get(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: socket, path, timeout: 30_000 }, (res) => {
      let body = '';
      res.setEncoding('utf8');
      res.on('data', (part: string) => {
        body += part;
      });
      res.on('end', () => {
        if (res.statusCode === 200) resolve(body);
        else reject(new Error(`${path}: ${res.statusCode} ${body.slice(0, 300)}`));
      });
    });
    asked.on('error', reject);
    asked.end();
  });
}
const items = async <T>(path: string): Promise<readonly T[]> => (JSON.parse(await get(path)) as { readonly items: readonly T[] }).items;

export const node = async (): Promise<Node> => JSON.parse(await get('/node')) as Node;
export const pods = (): Promise<readonly Pod[]> => items('/pods');
export const conditions = (): Promise<readonly Condition[]> => items('/conditions');
export const events = (): Promise<readonly Event[]> => items('/events');
export const syncs = async (): Promise<readonly Sync[]> =>
  (await items<Sync & { readonly object: Pick<Sync, 'name'> }>('/sync')).map(({ object, ...rest }) => ({ ...rest, ...object }));
export const pod = async (name: string): Promise<Pod | undefined> => (await pods()).find((p) => p.metadata.name === name);
export const eventsOf = async (name: string, reason: string): Promise<readonly Event[]> =>
  (await events()).filter((e) => e.involvedObject.name === name && e.reason === reason);

/** `podsched …` */
export const podsched = (...args: readonly string[]): Promise<Ran> => ran('/usr/bin/podsched', args);

export type Spec = Readonly<Record<string, unknown>>;

/** A manifest renamed in, as a careful editor does. */
export function drop(name: string, spec: Spec, metadata: Spec = {}): void {
  const whole = { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec: { terminationGracePeriodSeconds: 1, ...spec } };
  write(`${manifests}/${name}.json`, `${JSON.stringify(whole, undefined, 1)}\n`);
}

/** Without a network of its own: to make one and to take it away is most of what a pod costs on this processor. */
export const plain: Spec = { hostNetwork: true };

/** Serves until it is asked to end. */
export const serve: readonly string[] = ['sh', '-c', "trap 'exit 0' TERM; sleep 2147483647 & wait"];
export const script = (text: string): readonly string[] => ['sh', '-c', text];
export const container = (command: readonly string[] = serve, more: Spec = {}): Spec => ({
  name: 'main',
  image: 'localhost/busybox:1',
  command,
  ...more,
});

const shown = (p: Pod | undefined): string => JSON.stringify(p?.status ?? 'no such pod').slice(0, 1500);

/** The pod once `check` holds for it. */
export async function untilPod(name: string, what: string, check: (p: Pod) => boolean, seconds = 120): Promise<Pod> {
  let last: Pod | undefined;
  return await until(
    () => `${name} ${what}; it is ${shown(last)}`,
    seconds,
    async () => {
      last = await pod(name);
      return last !== undefined && check(last) ? last : undefined;
    },
  );
}
export const isReady = (p: Pod): boolean => p.status.phase === 'Running' && (p.status.containerStatuses ?? []).every((c) => c.ready);
export const untilReady = (name: string, seconds = 150): Promise<Pod> => untilPod(name, 'is running and ready', isReady, seconds);

/** Takes manifests away; their pods end while the next story goes on. */
export const takeAway = (...names: readonly string[]): void => {
  for (const name of names) rmSync(`${manifests}/${name}.json`, { force: true });
};
/** Takes manifests away and waits until their pods are gone. */
export async function remove(...names: readonly string[]): Promise<void> {
  takeAway(...names);
  await until(
    `${names.join(', ')} to be gone`,
    120,
    async () => (await pods()).every((p) => !names.includes(p.metadata.name)) || undefined,
  );
}
/** Takes every manifest that a check wrote away. */
export const removeAll = async (): Promise<void> => {
  await remove(...(await pods()).map((p) => p.metadata.name));
};

export const mainPid = async (): Promise<number> => Number(await unit('podsched.service', 'MainPID'));

/** The agent answers on its socket. */
export const answers = (seconds = 120): Promise<boolean> =>
  until('the agent to answer', seconds, async () => {
    if (!existsSync(socket)) return undefined;
    await get('/healthz');
    return true;
  });

/** Restarted by systemd, and answering again. */
export async function restartAgent(): Promise<void> {
  await run('systemctl', 'restart', 'podsched');
  await answers();
}

/** Where the checks' own broker listens: podsched's embedded one has Debian's port. */
export const brokerPort = 1884;
export type Settings = Readonly<Record<string, unknown>>;

/** There from the beginning: a restart of the agent for them costs half a minute. */
export const serialById = '/dev/serial/by-id';
const deviceClasses = {
  camera: ['/dev/video0'],
  serial: [`${serialById}/*`],
  gpio: ['/dev/gpiochip*'],
  i2c: ['/dev/i2c-*'],
};

/** podsched.yaml (JSON is YAML too), and a restart, unless that is what it runs with: to start takes the agent half a minute here. */
export async function configure(more: Settings = {}): Promise<void> {
  const settings = {
    apiVersion: 'podsched.dev/v1',
    kind: 'PodschedConfiguration',
    mqtt: { servers: [`mqtt://127.0.0.1:${brokerPort}`], keepalive: '5s' },
    podPidsLimit: 200,
    devices: deviceClasses,
    ...more,
  };
  const file = `${manifests}/podsched.yaml`;
  const text = JSON.stringify(settings, undefined, 1);
  if (readIf(file) === text && (await unit('podsched.service', 'ActiveState')) === 'active') {
    await answers();
    return;
  }
  write(file, `${text}\n`);
  await restartAgent();
}
