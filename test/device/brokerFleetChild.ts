/**
 * A part of a fleet: whole agents around fake runtimes, in real time, with real sessions on one broker. Its parent asks how they are.
 */
import { MqttBroker } from '../../src/broker/client.ts';
import type { Broker, BrokerConnection } from '../../src/world/broker.ts';
import { type Monotonic, systemClock, type WallTime } from '../../src/world/clock.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { manifest, World } from '../scenario/world.ts';
import { serve } from './brokerServe.ts';
import { sleep } from './process.ts';

const url = process.env.BROKER_URL ?? '';
const from = Number(process.env.FROM);
const count = Number(process.env.COUNT);

/** Time as it is, behind the fake's name. */
class RealTime extends FakeClock {
  override now(): WallTime {
    return systemClock.now();
  }
  override monotonic(): Monotonic {
    return systemClock.monotonic();
  }
  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms, signal);
  }
  override async advance(ms: number): Promise<void> {
    await settle();
    if (ms > 0) await sleep(ms);
  }
}

/** A real broker, behind the fake's name; it notes when each agent tried, and when it was taken. */
class RealDoor extends FakeBroker {
  readonly #door: Broker = new MqttBroker();
  readonly tried: { readonly who: string; readonly at: number }[] = [];
  readonly taken: { readonly who: string; readonly at: number }[] = [];
  override async connect(...[options, handlers, signal]: Parameters<Broker['connect']>): Promise<BrokerConnection> {
    const who = options.clientId;
    this.tried.push({ who, at: Date.now() });
    const connection = await this.#door.connect({ ...options, server: url }, handlers, signal);
    this.taken.push({ who, at: Date.now() });
    return connection;
  }
}

const clock = new RealTime();
const door = new RealDoor(clock);
const worlds = Array.from({ length: count }, (_, i) => new World({ clock, broker: door, nodeName: `pi-${from + i}`, random: Math.random }));
const containers = (world: World): string[] => [...world.runtime.containers.values()].map((c) => `${c.id} ${c.state}`);

async function main(): Promise<void> {
  for (const world of worlds) {
    world.folder.files.set('web.yaml', manifest('web'));
    await world.start();
  }
  serve(async () => {
    return {
      /** The nodes that are connected and have told everything. */
      settled: worlds.filter((w) => w.session?.connected() === true && w.session.counters().dirtyTopics === 0).length,
      phases: worlds.map((w) => w.kubelet.status.told()[0]?.status.phase),
      tried: door.tried,
      taken: door.taken,
      deeds: worlds.map((w) => w.runtime.deeds.length),
      containers: worlds.map(containers),
    };
  });
}

main().catch((e: unknown) => {
  console.error(e);
  process.exit(1);
});
