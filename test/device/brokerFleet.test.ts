/** Field case I3 for a fleet: two hundred agents in four processes, and their one broker forgets everything. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import { until } from '../until.ts';
import { build, type Child, startChild } from './brokerChild.ts';
import { startClientSoon, stateOf } from './brokerNode.ts';
import { withParts } from './brokerParts.ts';
import { startMosquitto } from './mosquitto.ts';
import { sleep } from './process.ts';

const processes = 4;
const each = 50;

interface Answer {
  readonly settled: number;
  readonly phases: readonly (string | undefined)[];
  readonly tried: readonly { readonly who: string; readonly at: number }[];
  readonly taken: readonly { readonly who: string; readonly at: number }[];
  readonly deeds: readonly number[];
  readonly containers: readonly (readonly string[])[];
}

test('I3: two hundred agents, their broker starts anew and empty: they come back spread, all is told as it is, and no pod is touched', () =>
  withParts(async (keep) => {
    const broker = keep(await startMosquitto());
    const built = await build('brokerFleetChild.ts');
    keep({ stop: async () => built.remove() });
    const children: Child[] = [];
    for (let i = 0; i < processes; i++) {
      const env = { BROKER_URL: broker.url, FROM: `${i * each}`, COUNT: `${each}` };
      const child = startChild(built.path('brokerFleetChild.ts'), { env });
      keep({ stop: () => child.kill() });
      children.push(child);
    }
    await Promise.all(children.map((c) => c.next()));
    const look = async (): Promise<Answer[]> => (await Promise.all(children.map((c) => c.ask({})))) as unknown as Answer[];
    const settled = async (since: number): Promise<Answer[]> => {
      let now: Answer[] = [];
      await until('all are connected and have told', async () => {
        await sleep(250);
        now = await look();
        return now.every(
          (a) => a.settled === each && a.phases.every((p) => p === 'Running') && a.taken.filter((t) => t.at >= since).length >= each,
        );
      });
      return now;
    };
    const before = await settled(0);

    const killedAt = Date.now();
    await broker.kill();
    await broker.restart({ empty: true });
    const after = await settled(killedAt);

    const back = after.flatMap((a) => a.taken.filter((t) => t.at >= killedAt).map((t) => t.who));
    assert.deepEqual([back.length, new Set(back).size], [processes * each, processes * each], 'each connects once');
    // the first try of each: when it would have come to a broker that is there at once
    const first = new Map<string, number>();
    for (const { who, at } of after.flatMap((a) => a.tried)) if (at >= killedAt && !first.has(who)) first.set(who, at);
    const tries = [...first.values()].sort((a, b) => a - b);
    const spread = (tries.at(-1) ?? 0) - (tries[0] ?? 0);
    assert.ok(spread > 3_000, `${spread} ms between the first and the last`);
    const crowd = Math.max(...tries.map((t) => tries.filter((u) => u >= t && u < t + 250).length));
    assert.ok(crowd <= 60, `${crowd} of them within 250 ms`);
    console.log(`  200 agents come back over ${(spread / 1000).toFixed(1)} s, at most ${crowd} within 250 ms`);

    const what = (answers: readonly Answer[]) => answers.map((a) => [a.deeds, a.containers]);
    assert.deepEqual(what(after), what(before), 'no pod is touched');
    const reader = keep(await startClientSoon(broker.url, { subscribe: 'podsched/v1/nodes/+/online' }));
    await reader.mqtt.subscribeAsync('podsched/v1/nodes/+/pods/#', { qos: 1 });
    const names = Array.from({ length: processes * each }, (_, i) => `podsched/v1/nodes/pi-${i}`);
    await until('a reader has them all', () => names.every((n) => reader.last(`${n}/pods/default/web`) !== undefined));
    for (const [i, name] of names.entries()) {
      assert.equal(stateOf(reader.last(`${name}/online`)), 'online', name);
      const told = reader.last(`${name}/pods/default/web`) as ToldPod;
      assert.equal(told.status.phase, 'Running', name);
      const running = after[Math.floor(i / each)]?.containers[i % each];
      const id = told.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '');
      assert.deepEqual(running, [`${id} running`], name);
    }
  }));
