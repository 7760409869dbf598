/** A broker in memory, virtual time, and who asks there; nodes that answer commands as the agent does. */
import { createHash } from 'node:crypto';
import type { NodeOnline } from '../../src/api/payloads.ts';
import { onlinePayload } from '../../src/broker/online.ts';
import { RemoteBroker } from '../../src/cli/remoteBroker.ts';
import { RemoteNode } from '../../src/cli/remoteNode.ts';
import type { RemoteSettings } from '../../src/cli/remoteOptions.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { type BedOptions, commandBed } from '../remote/commandBed.ts';
import { until } from '../until.ts';

export const root = 'podsched/v1';
export const settings: RemoteSettings = { servers: ['mqtt://a'], prefix: root, requester: 'ops', tls: {} };

export const sha16 = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

export interface Bed {
  readonly clock: FakeClock;
  readonly broker: FakeBroker;
  readonly remote: RemoteBroker;
  readonly out: string[];
  readonly err: string[];
  readonly print: { out(text: string): void; err(text: string): void; nowMs(): number; sleep(ms: number): Promise<void> };
  /** Lets time pass until the work is done. */
  run<T>(work: Promise<T>): Promise<T>;
  /** The same for work that needs no time: what is awaited beside the virtual time (a module that is loaded) then costs none. */
  still<T>(work: Promise<T>): Promise<T>;
  /** Lets seconds pass, each with all that it causes. */
  pass(seconds: number): Promise<void>;
  /** What was printed since the last call. */
  said(): string;
  retained(prefix?: string): Record<string, string>;
  /** Another one at the same broker. */
  another(o?: Partial<RemoteSettings>): Promise<RemoteBroker>;
}

/** Lets virtual time pass, as far as somebody waits for it, until the work is done. */
export async function drive<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let over = false;
  const end = (): void => {
    over = true;
  };
  work.then(end, end);
  while (!over) {
    for (let i = 0; i < 10 && !over; i++) await settle();
    if (over) break;
    const next = clock.nextInMs;
    // files are read beside the virtual time
    if (next === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
    else await clock.advance(next);
  }
  return work;
}

export async function fleetBed(version: 4 | 5 = 5): Promise<Bed> {
  const clock = new FakeClock();
  const broker = new FakeBroker(clock);
  if (version === 4) broker.connackCode = (o) => (o.protocolVersion === 5 ? 1 : undefined);
  const another = (o: Partial<RemoteSettings> = {}): Promise<RemoteBroker> =>
    drive(clock, RemoteBroker.open({ ...settings, ...o }, { broker, clock }));
  const out: string[] = [];
  const err: string[] = [];
  return {
    clock,
    broker,
    remote: await another(),
    out,
    err,
    print: {
      out: (text) => out.push(text),
      err: (text) => err.push(text),
      nowMs: () => clock.now(),
      sleep: (ms) => clock.sleep(ms),
    },
    run: (work) => drive(clock, work),
    still: async (work) => {
      let over = false;
      const end = (): void => {
        over = true;
      };
      work.then(end, end);
      await until('the work is done, without any time', () => over);
      return work;
    },
    pass: async (seconds) => {
      for (let i = 0; i < seconds; i++) {
        await clock.advance(1000);
        for (let k = 0; k < 20; k++) await settle();
      }
    },
    said: () => out.splice(0).join(''),
    retained: (prefix = '') => broker.retainedNow(prefix),
    another,
  };
}

export const online = (node: string, state: NodeOnline['state'] = 'online', o: { heartbeatSeconds?: number } = {}): string =>
  onlinePayload(state, {
    node,
    machine: 'aaaaaaaaaaaa',
    bootID: 'boot-1',
    session: 1000,
    heartbeatSeconds: o.heartbeatSeconds ?? 60,
    agentVersion: '1',
    clockSynced: true,
    boot: 1,
    seq: 1,
  });

/** pi-07 is there and answers commands, with the very code that does so in the agent. */
export async function answeringNode(bed: Bed, o: BedOptions = {}): Promise<ReturnType<typeof commandBed>> {
  await import('../../src/remote/verbs.ts');
  const node = commandBed({
    ...o,
    clock: bed.clock,
    deps: {
      reply: async (topic, payload, { correlationData }) => bed.broker.say(topic, payload, { ...(correlationData && { correlationData }) }),
      publishLogs: async (topic, payload) => bed.broker.say(topic, payload),
      ...o.deps,
    },
  });
  const connection = await bed.broker.connect(
    {
      server: 'mqtt://a',
      protocolVersion: bed.remote.protocolVersion,
      clientId: 'node',
      cleanStart: true,
      keepaliveSeconds: 30,
      will: {
        topic: `${root}/nodes/pi-07/online`,
        payload: online('pi-07', 'lost'),
        qos: 1,
        retain: true,
        delaySeconds: 0,
        expirySeconds: 60,
      },
    },
    { onMessage: (m) => node.commands.message({ ...m, queued: false }), onClose: () => {} },
  );
  await connection.subscribe([`${root}/cmd/pi-07/+`], 1);
  bed.broker.say(`${root}/nodes/pi-07/online`, online('pi-07'), { retain: true });
  return node;
}

export const openNode = (bed: Bed, name = 'pi-07', o: Parameters<typeof RemoteNode.open>[2] = {}): Promise<RemoteNode> =>
  bed.run(RemoteNode.open(bed.remote, name, o));
