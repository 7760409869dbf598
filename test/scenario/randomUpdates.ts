/**
 * One seed: updates only. Edits to images that are here, on the way, not there or sick, rollbacks, holds by annotation and command, ports that
 * change hands, full cards, a registry and a runtime that come and go, restarts and power cuts at any moment; then quiet, and each pod runs
 * what its manifest says, or says why not, with a cause that is there.
 */
import { keyText } from '../../src/api/objects.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { randomOf } from './random.ts';
import { World } from './world.ts';

const names = ['ant', 'bee', 'cat'] as const;
type Name = (typeof names)[number];
/** `sick` is never ready, `mad` crashes soon after each start. */
const tags = ['1', '2', '3', '4', 'sick', 'mad'] as const;

interface Wanted {
  readonly tag: (typeof tags)[number];
  readonly always: boolean;
  readonly rollback: boolean;
  readonly held: boolean;
  readonly label: number;
  readonly host: number;
  readonly port: number;
  readonly elsewhere: boolean;
  /** Runs once, for a minute. */
  readonly job: boolean;
  readonly secret: boolean;
}

const first: Wanted = {
  ...{ tag: '1', always: false, rollback: false, held: false, label: 0, host: 0, port: 0, elsewhere: false, job: false, secret: false },
};

const imageOf = (name: string, tag: string): string => `localhost/${name}:${tag}`;

function textOf(name: Name, w: Wanted): string {
  const annotations = {
    ...(w.rollback && { 'podsched.dev/rollback': '40s' }),
    ...(w.held && { 'podsched.dev/hold': 'true' }),
    ...(w.secret && { 'podsched.dev/restart-on-change': 'true' }),
  };
  const fields = [
    'name: app',
    `image: "${imageOf(name, w.tag)}"`,
    `command: [${w.job ? 'once' : 'stay'}]`,
    `imagePullPolicy: ${w.always ? 'Always' : 'IfNotPresent'}`,
    `readinessProbe: {exec: {command: [ready, "${w.tag}"]}, periodSeconds: 2, failureThreshold: 1}`,
    ...(w.port > 0 ? [`ports: [{containerPort: 80, hostPort: ${w.port}}]`] : []),
    ...(w.secret ? ['env: [{name: A, valueFrom: {secretKeyRef: {name: db, key: pw, optional: true}}}]'] : []),
  ];
  return [
    'apiVersion: v1',
    'kind: Pod',
    `metadata: {name: ${name}, annotations: ${JSON.stringify(annotations)}, labels: {label: v${w.label}}}`,
    'spec:',
    '  terminationGracePeriodSeconds: 3',
    `  hostname: h${w.host}`,
    ...(w.job ? ['  restartPolicy: Never'] : []),
    ...(w.elsewhere ? ['  nodeSelector: {disk: nvme}'] : []),
    `  imagePullSecrets: [{name: reg}]`,
    '  containers:',
    `  - {${fields.join(', ')}}`,
    '',
  ].join('\n');
}

export class RandomUpdates {
  readonly log: string[] = [];
  readonly faults: string[] = [];
  readonly world: World;
  #wanted = new Map<Name, Wanted>();
  #random: () => number;
  #full = false;
  #podOf = new Map<string, string>();
  #always = new Set<string>();
  #releases: (() => void)[] = [];

  constructor(readonly seed: number) {
    this.#random = randomOf(seed);
    this.world = new World({ random: this.#random, latencyMs: 1 + Math.floor(this.#random() * 40) });
    const { runtime, stateStore } = this.world;
    for (const name of names) for (const tag of ['1', 'sick', 'mad']) runtime.images.set(imageOf(name, tag), { state: 'present' });
    for (const name of names) runtime.images.set(imageOf(name, '2'), { state: 'pullable', pullMs: 8_000 });
    runtime.onStart((_, { userSpecifiedImage: image, command }) => ({
      exec: ([, tag]) => ({ exitCode: tag === 'sick' ? 1 : 0 }),
      ...(image.endsWith(':mad') && { exitAfterMs: 3_000, exitCode: 1 }),
      ...(command[0] === 'once' && { exitAfterMs: 60_000, exitCode: 0 }),
    }));
    const put = stateStore.put.bind(stateStore);
    const stop = runtime.stopContainer.bind(runtime);
    runtime.stopContainer = (id, grace) => {
      const { config, podUid } = runtime.containers.get(id) ?? {};
      const name = config?.userSpecifiedImage.split(/[/:]/)[1];
      if (
        name !== undefined &&
        podUid !== undefined &&
        this.world.pod(name)?.metadata.uid === podUid &&
        this.#wanted.get(name as Name)?.elsewhere === false
      )
        this.#podOf.set(id, name);
      return stop(id, grace);
    };
    stateStore.put = (key, value) => (this.#full ? Promise.reject(new Error('no space left on device')) : put(key, value));
  }

  async run(steps = 45): Promise<readonly string[]> {
    const { world } = this;
    for (const name of names) this.#write(name, first);
    await world.start();
    await world.advance(15);
    for (let i = 0; i < steps; i++) {
      await this.#step();
      await world.advance(this.#random() < 0.4 ? this.#random() * 0.5 : this.#random() * 30);
    }
    await this.#mend();
    await world.advance(1_500);
    this.#judge();
    this.#judgePulls();
    await this.#judgeQuiet();
    this.faults.push(...world.runtime.violations);
    return this.faults;
  }

  #write(name: Name, wanted: Wanted): void {
    this.#wanted.set(name, wanted);
    if (wanted.always) this.#always.add(imageOf(name, wanted.tag));
    this.world.folder.write(`${name}.yaml`, textOf(name, wanted));
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  async #step(): Promise<void> {
    const { world } = this;
    const { runtime } = world;
    const say = (what: string) => this.log.push(`${(world.clock.monotonic() / 1000 - 1000).toFixed(1)}s ${what}`);
    const name = this.#pick(names);
    const key = keyText({ kind: 'Pod', namespace: 'default', name });
    const dice = this.#random();
    if (dice < 0.38) {
      const next = this.#next(this.#wanted.get(name) ?? first);
      say(`write ${name} ${JSON.stringify(next)}`);
      this.#write(name, next);
    } else if (dice < 0.42) {
      say(`remove ${name}`);
      this.#wanted.delete(name);
      world.folder.remove(`${name}.yaml`);
    } else if (dice < 0.54) {
      const image = imageOf(name, this.#pick(['2', '3', '4']));
      const next = this.#pick(['gone', 'quick', 'slow', 'refused', 'patience', 'unauthorized'] as const);
      if (runtime.images.get(image)?.state === 'present') return;
      say(`${image} is ${next}`);
      this.#registry(image, next);
    } else if (dice < 0.58) {
      say(`hold ${name}`);
      void world.kubelet.updates.hold(key).catch(() => {}); // a full card
    } else if (dice < 0.64) {
      say(`release ${name}`);
      void world.kubelet.updates.release(key).catch(() => {}); // a full card
    } else if (dice < 0.68) {
      this.#full = !this.#full;
      say(this.#full ? 'the card is full' : 'the card has room');
    } else if (dice < 0.72) {
      const victim = runtime.find(name, 'app');
      if (victim?.state !== 'running') return;
      say(`${name} crashes`);
      runtime.exit(victim.id, 1);
    } else if (dice < 0.76) {
      const method = this.#pick(['imageStatus', 'pullImage', 'stopContainer', 'listContainers'] as const);
      say(`${method} hangs`);
      let waits = 1;
      const release = runtime.hang(method, () => waits-- > 0);
      this.#releases.push(release);
      if (this.#random() < 0.7) world.clock.sleep(this.#random() * 60_000).then(release, () => {});
    } else if (dice < 0.81) {
      const method = this.#pick(['imageStatus', 'pullImage', 'startContainer', 'createContainer', 'runSandbox'] as const);
      say(`next ${method} fails`);
      runtime.failNext(method, new RuntimeError('unknown', `${method}: no luck`), 1 + Math.floor(this.#random() * 2));
    } else if (dice < 0.85) {
      say('the runtime is down for a while');
      runtime.setDown(true);
      await world.advance(this.#random() * 60);
      runtime.setDown(false);
    } else if (dice < 0.88) {
      say('the Secrets change');
      world.folder.write(
        'db.yaml',
        `apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {pw: v${Math.floor(this.#random() * 3)}}\n`,
      );
    } else if (dice < 0.9) {
      say('the agent stops and starts again');
      const stopped = world.kubelet.stop();
      await world.advance(4);
      await stopped;
      await world.restart();
    } else if (dice < 0.96) {
      say('kill -9 of the agent');
      await world.restart();
    } else {
      say('power cut');
      await world.reboot();
    }
  }

  #registry(image: string, how: 'gone' | 'quick' | 'slow' | 'refused' | 'patience' | 'unauthorized'): void {
    const { images } = this.world.runtime;
    const failing = (text: string) => images.set(image, { state: 'failing', error: new RuntimeError('unknown', text) });
    if (how === 'gone') images.delete(image);
    else if (how === 'quick') images.set(image, { state: 'pullable', pullMs: 300 });
    else if (how === 'slow') images.set(image, { state: 'pullable', pullMs: this.#random() * 90_000 });
    else if (how === 'refused') failing('dial tcp 192.0.2.1:443: connect: connection refused');
    else if (how === 'patience') failing('429 Too Many Requests: toomanyrequests');
    else failing('pull access denied: 401 Unauthorized');
  }

  #next(before: Wanted): Wanted {
    const r = () => this.#random();
    const next: Wanted = { ...before, tag: this.#pick(tags) };
    if (r() < 0.5) return next;
    return {
      ...next,
      always: r() < 0.25,
      rollback: r() < 0.5,
      held: r() < 0.1,
      label: Math.floor(r() * 3),
      host: Math.floor(r() * 2),
      port: this.#pick([0, 0, 8080, 8081]),
      elsewhere: r() < 0.07,
      job: r() < 0.1,
      secret: r() < 0.3,
    };
  }

  /** All that stands in a way goes; what is wanted stays. */
  async #mend(): Promise<void> {
    const { world } = this;
    for (const release of this.#releases) release();
    world.runtime.setDown(false);
    this.#full = false;
    for (const name of names) {
      for (const tag of ['2', '3', '4']) {
        const image = imageOf(name, tag);
        if (world.runtime.images.get(image)?.state !== 'present') this.#registry(image, 'quick');
      }
      const wanted = this.#wanted.get(name);
      if (wanted?.held === true) this.#write(name, { ...wanted, held: false });
      const done = world.kubelet.updates.release(keyText({ kind: 'Pod', namespace: 'default', name }));
      await world.advance(15);
      await done;
    }
  }

  #judge(): void {
    const { world, faults } = this;
    for (const name of names) {
      const wanted = this.#wanted.get(name);
      const sync = world.sync(name);
      const said = `${sync?.phase} ${sync?.reason}: ${sync?.message}`;
      const app = world.runtime.find(name, 'app');
      const runs = app?.state === 'running' ? app.config.userSpecifiedImage.split(':').at(-1) : undefined;
      if (wanted === undefined) {
        if (runs !== undefined || sync !== undefined) faults.push(`${name} was removed: ${runs} runs, ${said}`);
        continue;
      }
      const [, port, by] = /port (\d+)\/TCP is used by pod default\/(\w+)/.exec(said) ?? [];
      if (sync?.phase === 'UpdateBlocked' || sync?.reason === 'NodePorts' || /its update is blocked \(/.test(said)) {
        if (!this.#holds(by as Name, Number(port))) faults.push(`${name} waits without a cause: ${said}`);
        continue;
      }
      if (sync?.phase === 'Held') faults.push(`${name} is held by nobody: ${said}`);
      const healthy = wanted.tag !== 'sick' && wanted.tag !== 'mad';
      if (sync?.phase === 'RolledBack' || /; rolled back: /.test(said)) {
        if ((healthy && !said.includes('NodePorts')) || !wanted.rollback || wanted.elsewhere)
          faults.push(`${name} ${JSON.stringify(wanted)} went back: ${said}`);
        if (sync?.desired?.revision === sync?.running?.revision) faults.push(`${name} went back to itself`);
        continue;
      }
      if (wanted.elsewhere) {
        if (sync?.reason !== 'NodeAffinity' && sync?.phase !== 'Completed') faults.push(`${name} is meant for another node: ${said}`);
        continue;
      }
      if (sync?.desired?.revision !== sync?.running?.revision) faults.push(`${name} runs another revision: ${said}`);
      if (wanted.job) {
        if (sync?.phase !== 'Completed' && sync?.phase !== 'Failed') faults.push(`${name} ran once: ${said}`);
      } else if (wanted.tag === 'mad') {
        if (app?.config.userSpecifiedImage !== imageOf(name, 'mad')) faults.push(`${name} should crash as mad: ${said}`);
      } else {
        if (runs !== wanted.tag) faults.push(`${name} should run ${wanted.tag} and runs ${runs}: ${said}`);
        if (healthy && sync?.reason !== 'Ready' && sync?.reason !== 'ImageStale') faults.push(`${name} is healthy: ${said}`);
      }
      if (world.pod(name)?.metadata.labels?.label !== `v${wanted.label}`) faults.push(`${name} is told with an old label`);
    }
  }

  /** Nothing was stopped for an image that was not here: what starts after a stop was not pulled between the two. */
  #judgePulls(): void {
    const stopped = new Map<string, number>();
    const pulled = new Map<string, number>();
    for (const { method, args, at } of this.world.runtime.calls) {
      if (method === 'pullImage') pulled.set(String(args[0]), at);
      const pod = method === 'stopContainer' ? this.#podOf.get(String(args[0])) : undefined;
      if (pod !== undefined) stopped.set(pod, at);
      if (method !== 'createContainer') continue;
      const [, config, sandbox] = args as [unknown, { userSpecifiedImage: string }, { name: string }];
      const [from, pull] = [stopped.get(sandbox.name), pulled.get(config.userSpecifiedImage)];
      stopped.delete(sandbox.name);
      if (from !== undefined && pull !== undefined && pull > from && at - from < 120_000 && !this.#always.has(config.userSpecifiedImage))
        this.faults.push(`${config.userSpecifiedImage} was pulled at ${pull} after a stop at ${from}, and started at ${at}`);
    }
  }

  #holds(name: Name, port: number): boolean {
    const app = this.world.runtime.find(name, 'app');
    return (
      app?.config !== undefined && (this.world.pod(name)?.spec.containers ?? []).some((c) => c.ports?.some((p) => p.hostPort === port))
    );
  }

  /** In quiet times, agent restarts included, nothing is touched; and no wait is left over. */
  async #judgeQuiet(): Promise<void> {
    const { world } = this;
    if ([...world.runtime.containers.values()].some((c) => c.config.userSpecifiedImage.endsWith(':mad'))) return;
    await world.advance(300);
    const deeds = world.runtime.deeds.length;
    const sleeping = world.clock.sleeping;
    await world.advance(900);
    await world.restart();
    await world.advance(300);
    const more = world.runtime.deeds.slice(deeds);
    if (more.length > 0) this.faults.push(`in quiet times: ${more.join(', ')}`);
    if (sleeping > 25) this.faults.push(`${sleeping} waits in quiet times`);
    this.log.push(`${sleeping} sleepers`);
  }
}
