/**
 * One seed: random edits, removals, re-adds, crashes, sick probes and hooks, containers added by hand, runtime errors and hangs, images that
 * come and go, lost events and agent restarts on four pods, in virtual time; then quiet, and the world must be what the manifests say. What
 * their processes do is randomProcesses.ts. The seed decides everything, so a failing one can be run alone:
 * `SEED=17 node --import tsx --test test/scenario/random.test.ts`.
 */
import type { PodUid } from '../../src/api/objects.ts';
import type { ToldPod } from '../../src/api/status.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { type Health, Processes } from './randomProcesses.ts';
import { manifest, World } from './world.ts';

/** mulberry32: small, and good enough to decide what happens next. */
export function randomOf(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const names = ['ant', 'bee', 'cat', 'dog'] as const;
const kinds = ['plain', 'two', 'init', 'sidecar', 'both', 'never', 'onFailure', 'jobWithSidecar'] as const;
type Kind = (typeof kinds)[number];

interface Wanted {
  readonly kind: Kind;
  readonly tag: number;
  readonly label: number;
  /** Probes of the app, and of the sidecar the startup probe. */
  readonly probes: boolean;
  readonly pre: 'none' | 'quick' | 'long' | 'fails' | 'hangs';
  readonly post: boolean;
  readonly selector: 'none' | 'fits' | 'away';
  /** On the host; 0: none. */
  readonly port: number;
  /** The app's environment takes a value of the ConfigMap. */
  readonly config: boolean;
}

const isJob = (kind: Kind): boolean => kind === 'never' || kind === 'onFailure' || kind === 'jobWithSidecar';

/** How a process behaves stands in its command, so that an edit of the manifest changes it. */
const container = (name: string, tag: number, words: readonly string[], more: readonly string[] = []) =>
  `{name: ${name}, image: "localhost/busybox:${tag}", command: ${JSON.stringify(['run', ...words])}${more.map((m) => `, ${m}`).join('')}}`;

const probe = (type: string, name: string, more = '') => `${type}Probe: {exec: {command: [${type}, ${name}]}, periodSeconds: 15${more}}`;
const configText = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg}\ndata: {word: hello}\n';

/** What stands on the app container beside its command. */
function appFields(name: string, w: Wanted): string[] {
  const fields: string[] = [];
  if (w.probes)
    fields.push(
      probe('startup', name, ', failureThreshold: 4'),
      probe('liveness', name, ', failureThreshold: 2, terminationGracePeriodSeconds: 3'),
      probe('readiness', name, ', failureThreshold: 1'),
    );
  const hooks = [
    ...(w.pre === 'none' ? [] : [`preStop: {exec: {command: [preStop, ${w.pre}]}}`]),
    ...(w.post ? [`postStart: {exec: {command: [postStart, ${name}]}}`] : []),
  ];
  if (hooks.length > 0) fields.push(`lifecycle: {${hooks.join(', ')}}`);
  if (w.port > 0) fields.push(`ports: [{containerPort: 80, hostPort: ${w.port}}]`);
  if (w.config) fields.push('env: [{name: WORD, valueFrom: {configMapKeyRef: {name: cfg, key: word}}}]');
  return fields;
}

function textOf(name: string, w: Wanted): string {
  const { kind, tag } = w;
  const stubborn = name === 'dog' ? ['ignore'] : [];
  const first = `- ${container('first', 1, ['exit=0'])}`;
  const side = `- ${container('side', 1, ['stay'], ['restartPolicy: Always', ...(w.probes ? [probe('startup', name)] : [])])}`;
  const init = { init: [first], sidecar: [side], both: [side, first], jobWithSidecar: [side] }[kind as string] ?? [];
  const asked = w.probes ? ['probed'] : [];
  const words = isJob(kind) ? ['exit=0', ...(kind === 'onFailure' ? [] : ['once'])] : ['stay', ...stubborn, ...asked];
  return manifest(name, {
    labels: { label: `v${w.label}` },
    lines: [
      `terminationGracePeriodSeconds: ${name === 'dog' ? 9 : 4}`,
      ...(isJob(kind) ? [`restartPolicy: ${kind === 'onFailure' ? 'OnFailure' : 'Never'}`] : []),
      ...(w.selector === 'none' ? [] : [`nodeSelector: {disk: ${w.selector === 'fits' ? 'ssd' : 'nvme'}}`]),
      ...(init.length > 0 ? ['initContainers:', ...init] : []),
    ],
    containers: [
      container('app', tag, words, isJob(kind) ? [] : appFields(name, w)),
      ...(kind === 'two' ? [container('more', 1, ['stay'])] : []),
    ],
  });
}

const appsOf: Readonly<Record<Kind, readonly string[]>> = {
  plain: ['app'],
  two: ['app', 'more'],
  init: ['app'],
  sidecar: ['app', 'side'],
  both: ['app', 'side'],
  never: [],
  onFailure: [],
  jobWithSidecar: [],
};
const plain: Wanted = {
  kind: 'plain',
  tag: 1,
  label: 0,
  probes: false,
  pre: 'none',
  post: false,
  selector: 'none',
  port: 0,
  config: false,
};
const healths: readonly Health[] = ['well', 'failing', 'hanging'];
const faultyMethods = [
  'runSandbox',
  'createContainer',
  'startContainer',
  'stopContainer',
  'stopSandbox',
  'removeContainer',
  'listContainers',
  'containerStatus',
  'sandboxStatus',
  'imageStatus',
  'execSync',
] as const;
/** A command that hangs is the processes' matter. */
const hangingMethods = faultyMethods.filter((m) => m !== 'execSync');

export class RandomStory {
  readonly log: string[] = [];
  readonly faults: string[] = [];
  readonly world: World;
  readonly processes: Processes;
  #wanted = new Map<string, Wanted>();
  #random: () => number;
  #releases: (() => void)[] = [];
  #started = new Set<string>();
  /** Containers added by hand, by instance. */
  #added = new Map<string, string[]>();

  constructor(readonly seed: number) {
    this.#random = randomOf(seed);
    this.world = new World({ random: this.#random, latencyMs: 1 + Math.floor(this.#random() * 40) });
    this.world.nodeLabels = { disk: 'ssd' };
    this.processes = new Processes(this.world, (fault) => this.faults.push(fault));
    this.world.onTold.push((topic, payload) => this.#judgeTold(topic, payload));
  }

  /** Runs the story; the faults found, in sentences. */
  async run(steps = 40): Promise<readonly string[]> {
    const { world } = this;
    world.folder.write('cfg.yaml', configText);
    await world.start();
    for (let i = 0; i < steps; i++) {
      await this.#step();
      await world.advance(this.#random() < 0.4 ? this.#random() * 0.5 : this.#random() * 25);
      this.#noteStarts();
    }
    for (const release of this.#releases) release();
    world.runtime.setDown(false);
    for (const tag of [2, 3]) {
      const image = `localhost/busybox:${tag}`;
      if (!world.runtime.images.has(image)) world.runtime.images.set(image, { state: 'pullable', pullMs: 5_000 });
    }
    world.folder.loseTicks = false;
    world.folder.write('cfg.yaml', configText);
    world.volumes.failure = undefined;
    this.processes.recover();
    await world.advance(1200);
    this.#judgeEnd();
    await this.#judgeQuiet();
    this.faults.push(...world.runtime.violations);
    return this.faults;
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  async #step(): Promise<void> {
    const { world } = this;
    const name = this.#pick(names);
    const before = this.#wanted.get(name);
    const dice = this.#random();
    const say = (what: string) => this.log.push(`${(world.clock.monotonic() / 1000 - 1000).toFixed(1)}s ${what}`);
    if (dice < 0.25 || before === undefined) {
      const next = this.#next(before);
      say(`write ${name} ${JSON.stringify(next)}`);
      // an edit in place of what still runs starts it anew
      this.processes.onceStarted.clear();
      this.#wanted.set(name, next);
      world.folder.write(`${name}.yaml`, textOf(name, next));
    } else if (dice < 0.3) {
      const [what, health] = [this.#pick(['startup', 'liveness', 'readiness', 'postStart'] as const), this.#pick(healths)];
      say(`${what} of ${name} is ${health} from now on`);
      this.processes.set(name, what, health);
    } else if (dice < 0.33) {
      await this.#addByHand(name, say);
    } else if (dice < 0.34) {
      world.volumes.failure = world.volumes.failure === undefined ? 'no space left on device' : undefined;
      say(`volumes ${world.volumes.failure === undefined ? 'can' : 'cannot'} be made from now on`);
    } else if (dice < 0.346) {
      const image = `localhost/busybox:${this.#pick([2, 3])}`;
      const { images } = world.runtime;
      say(`the image ${image} ${images.has(image) ? 'goes, from here and its registry' : 'comes back to its registry'}`);
      if (images.has(image)) images.delete(image);
      else images.set(image, { state: 'pullable', pullMs: this.#random() * 60_000 });
    } else if (dice < 0.355) {
      const gone = world.folder.files.has('cfg.yaml');
      say(`the ConfigMap ${gone ? 'goes' : 'comes'}`);
      if (gone) world.folder.remove('cfg.yaml');
      else world.folder.write('cfg.yaml', configText);
    } else if (dice < 0.42) {
      say(`remove ${name}`);
      this.#wanted.delete(name);
      world.folder.remove(`${name}.yaml`);
    } else if (dice < 0.47) {
      say(`rename the file of ${name}`);
      world.folder.remove(`${name}.yaml`);
      world.folder.write(`${name}.yaml`, `# moved\n${textOf(name, before)}`);
    } else if (dice < 0.52) {
      say(`break the file of ${name}, and mend it`);
      world.folder.write(`${name}.yaml`, 'kind: Pod\n  oops');
      await world.advance(this.#random() * 3);
      world.folder.write(`${name}.yaml`, textOf(name, before));
    } else if (dice < 0.62) {
      const alive = [...world.runtime.containers.values()].filter((c) => c.state === 'running');
      const victim = alive.length > 0 ? this.#pick(alive) : undefined;
      if (victim === undefined) return;
      say(`container ${victim.config.name} of ${victim.podUid} crashes`);
      world.runtime.exit(victim.id, 1);
    } else if (dice < 0.635) {
      say('somebody removes the containers of completed pods');
      this.#removeCompleted();
    } else if (dice < 0.66) {
      const ready = [...world.runtime.sandboxes.values()].filter((s) => s.state === 'ready');
      if (ready.length === 0) return;
      const victim = this.#pick(ready);
      say(`sandbox of ${victim.config.name} dies`);
      world.runtime.killSandbox(victim.id);
    } else if (dice < 0.76) {
      const method = this.#pick(faultyMethods);
      const when = this.#random() < 0.5 ? 'before' : 'after';
      say(`next ${method} fails ${when} its deed`);
      world.runtime.failNext(method, new RuntimeError('unknown', `${method}: no luck`), 1 + Math.floor(this.#random() * 2), when);
    } else if (dice < 0.82) {
      const method = this.#pick(hangingMethods);
      say(`${method} hangs`);
      let waits = 1;
      const release = world.runtime.hang(method, () => waits-- > 0);
      this.#releases.push(release);
      if (this.#random() < 0.7) world.clock.sleep(this.#random() * 60_000).then(release, () => {});
    } else if (dice < 0.86) {
      const n = 1 + Math.floor(this.#random() * 6);
      say(`${n} events are lost`);
      world.runtime.loseEvents(n);
    } else if (dice < 0.89) {
      say('the event stream breaks');
      world.runtime.breakEvents();
    } else if (dice < 0.92) {
      say('the runtime is down for a while');
      world.runtime.setDown(true);
      await world.advance(this.#random() * 30);
      world.runtime.setDown(false);
    } else if (dice < 0.94) {
      say('the agent stops and starts again');
      const stopped = world.kubelet.stop();
      await world.advance(4);
      await stopped;
      await world.restart();
    } else if (dice < 0.98) {
      say('kill -9 of the agent');
      await world.restart();
    } else {
      say('power cut');
      await world.reboot();
    }
  }

  #next(before: Wanted | undefined): Wanted {
    const r = () => this.#random();
    const kind = before === undefined || r() < 0.3 ? this.#pick(kinds) : before.kind;
    const next: Wanted = { ...(before ?? plain), kind, tag: 1 + Math.floor(r() * 3), label: Math.floor(r() * 3) };
    // mostly as it was: what changes a pod's insides too often never runs
    if (before !== undefined && r() < 0.6) return next;
    return {
      ...next,
      probes: r() < 0.5,
      pre: this.#pick(['none', 'quick', 'long', 'fails', 'hangs'] as const),
      post: r() < 0.3,
      selector: this.#pick(['none', 'none', 'fits', 'fits', 'away'] as const),
      port: this.#pick([0, 0, 0, 8080, 8081]),
      config: r() < 0.2,
    };
  }

  async #addByHand(name: string, say: (what: string) => void): Promise<void> {
    const pod = this.world.pod(name);
    if (pod?.status.phase !== 'Running' || pod.metadata.deletionTimestamp !== undefined) return;
    const uid = pod.metadata.uid ?? '';
    const added = this.#added.get(uid) ?? [];
    const debug = `debug-${added.length}`;
    say(`${debug} is added to ${name} ${uid}`);
    this.#added.set(uid, [...added, debug]);
    await this.world.kubelet.podSide.addEphemeral(uid as PodUid, {
      name: debug,
      image: 'localhost/busybox:1',
      command: ['run', this.#random() < 0.5 ? 'stay' : 'exit=0'],
    });
  }

  /** What was never told as ended may have been anything, and nobody could know that it ran: it stays. */
  #removeCompleted(): void {
    const { containers } = this.world.runtime;
    const ended = new Set(this.world.toldPods().flatMap((p) => (p.status.phase === 'Succeeded' ? [p.metadata.uid] : [])));
    for (const c of [...containers.values()]) if (c.state === 'exited' && ended.has(c.podUid)) containers.delete(c.id);
  }

  #noteStarts(): void {
    for (const c of this.world.runtime.containers.values()) if (c.startedAt !== undefined) this.#started.add(c.id);
  }

  /** A container told as running has been started, and what is told as ended ended like that. */
  #judgeTold(topic: string, payload: string | undefined): void {
    if (payload === undefined || !topic.includes('/pods/')) return;
    this.#noteStarts();
    const pod = JSON.parse(payload) as ToldPod;
    this.processes.judgeTold(pod);
    for (const c of [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])]) {
      const id = c.containerID?.replace('containerd://', '') ?? '';
      if (c.state.running !== undefined && !this.#started.has(id))
        this.faults.push(`${topic}: ${c.name} told running, but ${id} never started`);
      const real = [...this.world.runtime.containers.values()].find((r) => r.id === id);
      const told = c.state.terminated;
      if (told !== undefined && real?.state === 'exited' && told.reason !== 'ContainerStatusUnknown' && told.exitCode !== real.exitCode) {
        this.faults.push(`${topic}: ${c.name} told exit ${told.exitCode}, was ${real.exitCode}`);
      }
    }
  }

  #judgeEnd(): void {
    const { world, faults } = this;
    for (const name of names) {
      const wanted = this.#wanted.get(name);
      const told = world.pod(name);
      const sandboxes = [...world.runtime.sandboxes.values()].filter((s) => s.config.name === name);
      if (wanted === undefined) {
        if (sandboxes.length > 0) faults.push(`${name} was removed, and ${sandboxes.length} sandboxes of it are left`);
        if (told !== undefined) faults.push(`${name} was removed, and is still told`);
        if (world.sync(name) !== undefined) faults.push(`${name} was removed, and its sync topic is still there`);
        continue;
      }
      if (told === undefined) {
        faults.push(`${name} is not told`);
        continue;
      }
      const held = world.sync(name)?.phase === 'UpdateBlocked';
      if (held || told.status.reason === 'NodePorts') {
        this.#judgeHeld(name, wanted);
        continue;
      }
      const refused = wanted.selector === 'away';
      // a job that has ended runs no more, wherever it may
      if (!isJob(wanted.kind) && refused !== (told.status.reason === 'NodeAffinity'))
        faults.push(`${name} ${wanted.selector} is told ${told.status.reason}`);
      const running = world.runtime.running().filter((n) => n.startsWith(`${name}/`) && !n.includes('/debug-'));
      const expected = refused ? [] : appsOf[wanted.kind].map((c) => `${name}/${c}`).sort();
      if (running.join() !== expected.join()) faults.push(`${name} should run [${expected}] and runs [${running}]`);
      if (told.metadata.labels?.label !== `v${wanted.label}`) faults.push(`${name} is told with an old label`);
      if (expected.length === 0) {
        if (told.status.phase !== 'Succeeded' && told.status.phase !== 'Failed')
          faults.push(`${name} is told ${told.status.phase}, and has ended`);
        continue;
      }
      this.#judgeRunning(name, wanted, told);
      if (sandboxes.filter((s) => s.state === 'ready').length !== 1) faults.push(`${name} has ${sandboxes.length} sandboxes`);
    }
  }

  #judgeRunning(name: string, wanted: Wanted, told: ToldPod): void {
    const { world, faults } = this;
    if (told.status.phase !== 'Running') faults.push(`${name} is told ${told.status.phase}, and runs`);
    const app = world.runtime.find(name, 'app');
    if (app?.config.userSpecifiedImage !== `localhost/busybox:${wanted.tag}`) faults.push(`${name} runs an old image`);
    const status = told.status.containerStatuses?.find((c) => c.name === 'app');
    if (status?.containerID !== `containerd://${app?.id}`) faults.push(`${name}/app is told as ${status?.containerID}, is ${app?.id}`);
    const ready = !wanted.probes || this.processes.health(name, 'readiness') === 'well';
    if (status?.ready !== ready) faults.push(`${name}/app runs, is ready: ${ready}, and is told ${status?.ready}`);
    const added = this.#added.get(told.metadata.uid ?? '') ?? [];
    const shown = (told.status.ephemeralContainerStatuses ?? []).map((c) => c.name);
    if (shown.join() !== added.join()) faults.push(`${name} was given [${added}] by hand and is told with [${shown}]`);
  }

  /** It waits for a port: then another one has it. */
  #judgeHeld(name: string, { port }: Wanted): void {
    const holders = this.processes.holdersOf(port).filter((other) => other !== name);
    if (port === 0 || holders.length === 0) this.faults.push(`${name} waits for the port ${port}, which nobody has`);
  }

  /** In quiet times, agent restarts included, nothing is touched. */
  async #judgeQuiet(): Promise<void> {
    const { world } = this;
    const deeds = world.runtime.deeds.length;
    await world.advance(300);
    this.#removeCompleted();
    await world.restart();
    await world.advance(300);
    const more = world.runtime.calls.filter((c) => /^(run|stop|remove|create|start|pull)/.test(c.method)).slice(deeds);
    if (more.length > 0) this.faults.push(`in quiet times: ${more.map((c) => c.method).join(', ')}`);
  }
}
