/**
 * One seed: sources only. Three pods come from a file, from the node's topic, a group's and all's, are changed, and go by an empty payload, a
 * tombstone or an index, while the link breaks, the broker is down or forgets, the runtime fails, and agents are killed and boards lose their
 * power; then quiet, and each pod is what its strongest source said last. What nobody can know (an empty payload while the node was away) may
 * be either way; what was lost must have changed nothing.
 */
import { RuntimeError } from '../../src/container/runtime.ts';
import { Afar, absent, podJson } from './afar.ts';
import { randomOf } from './random.ts';
import { manifest, type World } from './world.ts';

const names = ['ant', 'bee', 'cat'] as const;
type Name = (typeof names)[number];
/** The strongest first. */
const scopes = ['nodes/pi', 'groups/attic', 'all'] as const;
type Scope = (typeof scopes)[number];

/** What runs: the tag of the image and the host name; undefined: nothing. */
type Wish = string | undefined;
interface Topic {
  /** What stands at the broker: a wish, a tombstone, something that cannot be read, or nothing. */
  stands: { readonly is: 'wish'; readonly wish: string } | { readonly is: 'absent' | 'bad' | 'nothing' };
  /** What the node may hold of it. */
  may: Set<Wish>;
}

const faulty = ['runSandbox', 'createContainer', 'startContainer', 'stopContainer', 'stopSandbox', 'listContainers'] as const;

export class RandomTopics {
  readonly log: string[] = [];
  readonly faults: string[] = [];
  readonly afar: Afar;
  readonly world: World;
  readonly #random: () => number;
  #files = new Map<Name, string>();
  #topics = new Map<string, Topic>();
  #generation = 0;
  /** The connection of which everything that stood at the broker was heard. */
  #heardOn: number | undefined;

  constructor(readonly seed: number) {
    this.#random = randomOf(seed);
    this.afar = new Afar({ 'mqtt.groups': ['attic'] }, { random: this.#random, latencyMs: 1 + Math.floor(this.#random() * 40) });
    this.world = this.afar.world;
    if (this.#random() < 0.3) this.afar.broker.connackCode = (o) => (o.protocolVersion === 5 ? 1 : undefined);
    for (const scope of scopes)
      for (const name of names) this.#topics.set(`${scope} ${name}`, { stands: { is: 'nothing' }, may: new Set([undefined]) });
  }

  /** Runs the story; the faults found, in sentences. */
  async run(steps = 40): Promise<readonly string[]> {
    await this.world.start();
    for (let i = 0; i < steps; i++) {
      await this.#step();
      await this.world.advance(this.#random() < 0.5 ? this.#random() * 0.5 : this.#random() * 40);
    }
    this.world.runtime.setDown(false);
    if (this.afar.broker.down) this.afar.broker.restart({ keepRetained: true });
    await this.world.advance(600);
    await this.#hear();
    this.#judge('at the end');
    // what lay under the files comes to light, then what lay under the node's own
    for (const name of this.#files.keys()) this.world.folder.remove(`${name}.yaml`);
    this.#files.clear();
    await this.#hear();
    this.#judge('without files');
    for (const name of names) {
      this.#topic('nodes/pi', name).stands = { is: 'absent' };
      this.afar.keep(this.afar.topic(name), absent('Pod', name));
    }
    await this.#hear();
    this.#judge('without wishes of its own');
    await this.#judgeQuiet();
    this.faults.push(...this.world.runtime.violations);
    return this.faults;
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  #say(what: string): void {
    this.log.push(`${(this.world.clock.monotonic() / 1000 - 1000).toFixed(1)}s ${what}`);
  }

  #topic(scope: Scope, name: Name): Topic {
    return this.#topics.get(`${scope} ${name}`) as Topic;
  }

  async #step(): Promise<void> {
    const { afar, world } = this;
    const { broker } = afar;
    const dice = this.#random();
    if (dice < 0.62) {
      if (this.#random() < 0.15) this.#writeFile();
      else if (!broker.down) await this.#operate();
    } else if (dice < 0.7) {
      this.#say('the link breaks');
      broker.cut(world.clientId);
    } else if (dice < 0.75) {
      this.#say('the broker is down for a while');
      broker.kill();
      await world.advance(this.#random() * 200);
      const [keepRetained, keepSessions] = [this.#random() < 0.6, this.#random() < 0.3];
      this.#say(`and back, ${keepRetained ? 'with' : 'without'} what it retained`);
      if (!keepRetained) for (const topic of this.#topics.values()) topic.stands = { is: 'nothing' };
      broker.restart({ keepRetained, keepSessions });
    } else if (dice < 0.79) {
      this.#say('the broker forgets the session');
      broker.cut(world.clientId);
      broker.sessions.clear();
    } else if (dice < 0.86) {
      const method = this.#pick(faulty);
      this.#say(`next ${method} fails`);
      world.runtime.failNext(method, new RuntimeError('unknown', `${method}: no luck`), 1);
    } else if (dice < 0.89) {
      this.#say('the runtime is down for a while');
      world.runtime.setDown(true);
      await world.advance(this.#random() * 30);
      world.runtime.setDown(false);
    } else if (dice < 0.95) {
      this.#say('kill -9 of the agent');
      await world.restart();
    } else {
      this.#say('power cut');
      await world.reboot();
    }
  }

  #newWish(): string {
    return `${this.#pick([1, 2, 3])} h${this.#pick([1, 2])}`;
  }

  #writeFile(): void {
    const name = this.#pick(names);
    if (this.#files.has(name) && this.#random() < 0.8) {
      this.#say(`the file of ${name} goes`);
      this.#files.delete(name);
      this.world.folder.remove(`${name}.yaml`);
      return;
    }
    const wish = this.#newWish();
    this.#say(`file ${name}: ${wish}`);
    this.#files.set(name, wish);
    const [tag = '', host = ''] = wish.split(' ');
    const containers = [`{name: app, image: "localhost/busybox:${tag}"}`];
    this.world.folder.write(
      `${name}.yaml`,
      manifest(name, { lines: ['terminationGracePeriodSeconds: 4', `hostname: ${host}`], containers }),
    );
  }

  async #operate(): Promise<void> {
    const { afar, world } = this;
    const [scope, name, dice] = [this.#pick(scopes), this.#pick(names), this.#random()];
    const topic = this.#topic(scope, name);
    const at = afar.topic(name, scope);
    if (dice < 0.5) {
      const wish = this.#newWish();
      this.#say(`${at}: ${wish}`);
      topic.stands = { is: 'wish', wish };
      topic.may.add(wish);
      afar.keep(at, payloadOf(name, wish));
    } else if (dice < 0.6) {
      this.#say(`${at}: something that cannot be read`);
      topic.stands = { is: 'bad' };
      afar.keep(at, this.#pick(['{"kind": ', podJson('other'), 'kind: Pod\n  oops']));
    } else if (dice < 0.72) {
      this.#say(`${at}: tombstone`);
      topic.stands = { is: 'absent' };
      topic.may.add(undefined);
      afar.keep(at, absent('Pod', name));
    } else if (dice < 0.88) {
      this.#say(`${at}: emptied`);
      const listening = world.session?.session();
      topic.stands = { is: 'nothing' };
      topic.may.add(undefined);
      afar.keep(at, '');
      if (listening === undefined || listening !== this.#heardOn) return;
      await world.advance(20);
      if (world.session?.session() === listening) topic.may = new Set([undefined]);
    } else {
      // as tools do it: what is left is listed, and what is not is emptied
      topic.stands = { is: 'nothing' };
      this.#topic('nodes/pi', name).stands = { is: 'nothing' };
      afar.keep(at, '');
      afar.keep(afar.topic(name), '');
      topic.may.add(undefined);
      const listed = names.flatMap((n) => {
        const { stands } = this.#topic('nodes/pi', n);
        return stands.is === 'wish' ? [[n, payloadOf(n, stands.wish)] as const] : [];
      });
      this.#say(`an index of the node: ${listed.map(([n]) => n).join()}`);
      afar.index(++this.#generation, Object.fromEntries(listed));
      await this.#hear();
      for (const n of names) if (!listed.some(([l]) => l === n)) this.#topic('nodes/pi', n).may = new Set([undefined]);
    }
    if (this.#random() > 0.5) return;
    await this.#hear();
    this.#judge(`at ${((this.world.clock.monotonic() - 1_000_000) / 1000).toFixed(0)}s`);
  }

  /** Until the node has heard all that stands at the broker, and done it. */
  async #hear(): Promise<void> {
    const { session } = this.world;
    for (let i = 0; i < 20; i++) {
      const before = session?.session();
      await this.world.advance(60);
      if (before === undefined || session?.session() !== before) continue;
      this.#heardOn = before;
      for (const topic of this.#topics.values()) {
        if (topic.stands.is === 'wish') topic.may = new Set([topic.stands.wish]);
        if (topic.stands.is === 'absent') topic.may = new Set([undefined]);
      }
      return;
    }
    this.faults.push('the node does not connect');
  }

  /** What may run of a pod: the strongest source that has one decides. */
  #possible(name: Name): Set<Wish> {
    const file = this.#files.get(name);
    if (file !== undefined) return new Set([file]);
    const possible = new Set<Wish>();
    for (const scope of scopes) {
      const { may } = this.#topic(scope, name);
      for (const wish of may) if (wish !== undefined) possible.add(wish);
      if (!may.has(undefined)) return possible;
    }
    return possible.add(undefined);
  }

  #running(name: Name): Wish {
    const { runtime } = this.world;
    const sandbox = [...runtime.sandboxes.values()].find((s) => s.config.name === name && s.state === 'ready');
    const app = runtime.find(name, 'app');
    if (sandbox === undefined || app?.state !== 'running') return undefined;
    return `${app.config.userSpecifiedImage.split(':').at(-1)} ${sandbox.config.hostname}`;
  }

  #judge(when: string): void {
    const { world } = this;
    const faults = { push: (fault: string) => this.faults.push(`${when} ${fault}`) };
    for (const name of names) {
      const [possible, runs] = [this.#possible(name), this.#running(name)];
      if (!possible.has(runs)) faults.push(`${name} should run ${[...possible].map(String).join(' or ')}, and runs ${runs}`);
      if (runs === undefined) {
        const left = [...world.runtime.sandboxes.values()].filter((s) => s.config.name === name);
        if (left.length > 0) faults.push(`${name} is gone, and ${left.length} sandboxes of it are left`);
        if (world.pod(name) !== undefined) faults.push(`${name} is gone, and is still told`);
      } else if (world.pod(name)?.status.phase !== 'Running') faults.push(`${name} runs, and is told ${world.pod(name)?.status.phase}`);
    }
  }

  /** Nobody wishes anything: the link, the broker and the agent come and go, and nothing is touched. */
  async #judgeQuiet(): Promise<void> {
    const { world, afar } = this;
    const before = world.runtime.deeds.length;
    afar.broker.cut(world.clientId);
    await world.advance(300);
    await world.restart();
    await world.advance(300);
    afar.broker.kill();
    await world.advance(100);
    afar.broker.restart();
    await world.advance(300);
    await world.restart();
    await world.advance(300);
    const more = world.runtime.deeds.slice(before);
    if (more.length > 0) this.faults.push(`in quiet times: ${more.join(', ')}`);
  }
}

function payloadOf(name: Name, wish: string): string {
  const [tag, hostname] = wish.split(' ');
  return podJson(name, { image: Number(tag), spec: { hostname, terminationGracePeriodSeconds: 4 } });
}
