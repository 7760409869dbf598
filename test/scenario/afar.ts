/** A world with its broker, and the hands of those who give orders there: retained wishes, tombstones, indexes, signatures, commands. */
import { createHash } from 'node:crypto';
import type { Command, Reply } from '../../src/api/messages.ts';
import type { SyncStatus } from '../../src/api/payloads.ts';
import type { Settings } from '../../src/options.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { Orders } from './orders.ts';
import { World, type WorldOptions } from './world.ts';

export const prefix = 'podsched/v1';
export const replyTopic = `${prefix}/reply/ops/pi`;

let loaded = false;

export class Afar {
  readonly clock: FakeClock;
  readonly broker: FakeBroker;
  readonly orders: Orders;
  readonly world: World;
  #ids = 0;

  constructor(settings: Settings = {}, o: Omit<WorldOptions, 'broker' | 'orders'> = {}) {
    this.clock = o.clock ?? new FakeClock();
    this.broker = new FakeBroker(this.clock);
    this.orders = new Orders(settings);
    this.world = new World({ ...o, clock: this.clock, broker: this.broker, orders: this.orders });
  }

  /** The node's own topic of an object; another scope: `groups/attic`, `all`. */
  topic(name: string, scope = `nodes/${this.world.nodeName}`): string {
    return `${prefix}/desired/${scope}/default/${name}`;
  }

  /** Retained, as operators do it; an empty payload takes it away. */
  keep(topic: string, payload: string): void {
    this.broker.say(topic, payload, { retain: true });
  }

  /** An index of the node over what is given by name; of Pods, unless a name says its kind. */
  index(generation: number, listed: Readonly<Record<string, string>>): void {
    const entries = Object.entries(listed).map(([level, payload]) => {
      const [, kind = 'pod', name = level] = /^(configmap|secret):(.+)$/.exec(level) ?? [];
      const sha256 = createHash('sha256').update(payload).digest('hex').slice(0, 16);
      return { kind: { pod: 'Pod', configmap: 'ConfigMap', secret: 'Secret' }[kind], ns: 'default', name, sha256 };
    });
    const index = { apiVersion: 'podsched.dev/v1', kind: 'DesiredIndex', generation, entries };
    this.keep(`${prefix}/desired/nodes/${this.world.nodeName}/_index`, JSON.stringify(index));
  }

  /** How one source of an object is told: `phase reason`. */
  said(name: string, source = 'mqtt:node'): string | undefined {
    const row = this.world.sync(name)?.sources.find((s) => s.source === source);
    return row && `${row.phase} ${row.reason}`;
  }

  sync(level: string): SyncStatus | undefined {
    const text = this.world.topics()[`sync/default/${level}`];
    return text === undefined ? undefined : (JSON.parse(text) as SyncStatus);
  }

  /** Sends a command and lets time go on; its replies. */
  async ask(verb: string, command: Partial<Command> & Record<string, unknown> = {}, seconds = 10): Promise<readonly Reply[]> {
    const id = command.id ?? `id-${++this.#ids}`;
    const body = { apiVersion: 'podsched.dev/v1', kind: 'Command', id, replyTo: replyTopic, ...command };
    return this.send(verb, JSON.stringify(body), seconds);
  }

  async send(
    verb: string,
    payload: string,
    seconds = 10,
    o: { readonly retain?: boolean; readonly responseTopic?: string } = {},
  ): Promise<readonly Reply[]> {
    const before = this.replies().length;
    this.broker.say(`${prefix}/cmd/${this.world.nodeName}/${verb}`, payload, o);
    // verbs are loaded when one is asked for, the first time from the disk, which has no virtual time
    const isOver = () => this.replies().some(({ status }, i) => i >= before && status !== 'accepted' && status !== 'running');
    for (let i = 0; i < (loaded ? 50 : 5_000) && !isOver(); i++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      await this.world.advance(0);
    }
    loaded = true;
    await this.world.advance(seconds);
    return this.replies().slice(before);
  }

  replies(): readonly Reply[] {
    return this.broker.publishes.filter((p) => p.topic === replyTopic).map((p) => JSON.parse(p.payload) as Reply);
  }

  /** What was done to pods since the agent began. */
  get deeds(): number {
    return this.world.runtime.deeds.length;
  }
}

/** `accepted`, `ok`, `error TargetRequired` … */
export const words = (replies: readonly Reply[]): string[] =>
  replies.map(({ status, reason }) => (reason === undefined ? status : `${status} ${reason}`));

export const absent = (kind: string, name: string, generation?: number): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind,
    metadata: {
      name,
      annotations: {
        'podsched.dev/state': 'absent',
        ...(generation !== undefined && { 'podsched.dev/generation': String(generation) }),
      },
    },
  });

export interface PodWords {
  readonly image?: number;
  readonly spec?: object;
  readonly container?: object;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A Pod in JSON. */
export const podJson = (name: string, { image = 1, spec, container, ...metadata }: PodWords = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'app', image: `localhost/busybox:${image}`, command: ['sleep', '100'], ...container }], ...spec },
  });

export const mapJson = (name: string, data: Readonly<Record<string, string>>): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
