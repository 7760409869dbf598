/** What stories of whole pods are told with: a diary that containers write, everything that /pods ever said of a pod, and its events. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import type { ToldPod, V1Event } from '../../src/api/status.ts';
import type { Agent } from './agent.ts';
import type { Bed } from './bed.ts';
import { type Lab, startLab } from './lab.ts';
import { manifest, type PodText } from './manifest.ts';
import { sleep, until } from './process.ts';

/** Seconds since boot, the same clock in every container. */
export const uptime = (): number => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);

export interface Entry {
  readonly at: number;
  readonly text: string;
}

export interface Diary {
  readonly dir: string;
  /** A volume `diary`, and where containers see it. */
  readonly volume: object;
  readonly mount: { readonly name: string; readonly mountPath: string };
  entries(): Entry[];
  /** The first entry of this text, at or after `from`; waits for it. */
  of(text: string, timeoutMs?: number, from?: number): Promise<Entry>;
  write(text: string): void;
  /** A file beside the diary, which containers see as /diary/<name>. */
  put(name: string): void;
  remove(name: string): void;
  end(): void;
}

/** In front of a script: `note TEXT` is a line in the diary. */
export const note = 'note() { echo "$(cut -d" " -f1 /proc/uptime) $1" >>/diary/log; }; ';

export function startDiary(): Diary {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-diary-'));
  const log = join(dir, 'log');
  writeFileSync(log, '', { mode: 0o666 });
  const entries = () =>
    readFileSync(log, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line): Entry => ({ at: Number(line.slice(0, line.indexOf(' '))), text: line.slice(line.indexOf(' ') + 1) }));
  return {
    dir,
    volume: { name: 'diary', hostPath: { path: dir, type: 'Directory' } },
    mount: { name: 'diary', mountPath: '/diary' },
    entries,
    of: async (text, timeoutMs = 45_000, from = 0) => {
      let found: Entry | undefined;
      await until(`"${text}" in the diary`, timeoutMs, () => {
        found = entries().find((e) => e.text === text && e.at >= from);
        return found !== undefined;
      }).catch((e) => {
        throw new Error(`${e}\n${readFileSync(log, 'utf8')}`);
      });
      return found ?? { at: 0, text };
    },
    write: (text) => appendFileSync(log, `${uptime()} ${text}\n`),
    put: (name) => writeFileSync(join(dir, name), ''),
    remove: (name) => rmSync(join(dir, name), { force: true }),
    end: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** A lab and a diary for all tests of a file, given to it before the first and taken down after the last. */
export function setStage(name: string, given: (stage: { readonly lab: Lab; readonly diary: Diary }) => void): void {
  let lab: Lab | undefined;
  let diary: Diary | undefined;
  before(async () => {
    diary = startDiary();
    lab = await startLab(name);
    given({ lab, diary });
  });
  after(async () => {
    await lab?.stop();
    diary?.end();
  });
}

/** Puts its manifest into the folder; the pod's name. */
export function dropPod(lab: Lab, of: PodText): string {
  lab.agent.drop(`${of.metadata.name}.yaml`, manifest(of));
  return of.metadata.name;
}

/** A script that may write into the diary. */
export const sh = (script: string): string[] => ['sh', '-c', note + script];

/** Notes that it begins, serves, and notes that it was asked to end. */
export const stay = (name: string): string => `note "${name} begins"; trap 'note "${name} TERM"; exit 0' TERM; sleep 2147483647 & wait $!`;

export async function podsOf(agent: Agent): Promise<readonly ToldPod[]> {
  return (JSON.parse((await agent.get('/pods')).body) as { items?: ToldPod[] }).items ?? [];
}

/** The texts of the events of a pod, each as `Reason: message`, oldest first. */
export async function eventsOf(agent: Agent, name: string): Promise<string[]> {
  const { items } = JSON.parse((await agent.get('/events')).body) as { items: V1Event[] };
  return items.filter((e) => e.involvedObject.name === name).map((e) => `${e.reason}: ${e.message}`);
}

/** The file system of a pod's running container, seen from outside: an exec costs more than what is measured. */
export async function rootOf(bed: Bed, pod: string): Promise<string> {
  const found = (await bed.cri.containers()).find((c) => c.state === 'running' && c.labels['io.kubernetes.pod.name'] === pod);
  const line = (await bed.ctr('tasks', 'ls')).split('\n').find((l) => l.startsWith(found?.id ?? 'none'));
  return `/proc/${line?.trim().split(/\s+/)[1]}/root`;
}

export interface Glance {
  /** Seconds since boot. */
  readonly at: number;
  readonly pod: ToldPod;
}

/** Looks at /pods all the time, and keeps what is another status than before. */
export function watchPod(agent: Agent, name: string): { readonly seen: readonly Glance[]; end(): Promise<void> } {
  const seen: Glance[] = [];
  let over = false;
  let last = '';
  const looking = (async () => {
    while (!over) {
      const pod = (await podsOf(agent).catch(() => [])).find((p) => p.metadata.name === name);
      const text = JSON.stringify(pod?.status);
      if (pod !== undefined && text !== last) seen.push({ at: uptime(), pod });
      last = text;
      await sleep(40);
    }
  })();
  return {
    seen,
    end: () => {
      over = true;
      return looking;
    },
  };
}

/** Of any kind of container. */
export const statusOf = (pod: ToldPod | undefined, container: string) =>
  [...(pod?.status.initContainerStatuses ?? []), ...(pod?.status.containerStatuses ?? [])].find((c) => c.name === container);

export const conditionOf = (pod: ToldPod | undefined, type: string): string | undefined =>
  pod?.status.conditions?.find((c) => c.type === type)?.status;
