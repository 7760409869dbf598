/** Exec probes that hang, on a real containerd: how many processes they leave, what they cost the agent, and that they are nobody else's trouble. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { container, manifest, type PodText, pod } from './manifest.ts';
import { processes, sleep, until } from './process.ts';
import { conditionOf, eventsOf, podsOf, statusOf } from './story.ts';

let bed: Bed;
let agent: Agent;
before(async () => {
  bed = await startBed({ name: 'probes' });
  agent = await startAgent(bed, { nodeName: 'probes' });
});
after(async () => {
  await agent?.remove();
  await bed?.stop();
});

const drop = (of: PodText): void => agent.drop(`${of.metadata.name}.yaml`, manifest(of));
const probe = (...command: string[]) => ({ exec: { command }, periodSeconds: 1, timeoutSeconds: 1 });
const podOf = async (name: string) => (await podsOf(agent)).find((p) => p.metadata.name === name);
/** Each has its own number of seconds, by which its processes are known on the whole machine. */
const seconds = (n: number): string => `${2_000_000_000 + (process.pid % 100_000) * 10 + n}`;
const running = (n: number): number => processes().filter(({ argv }) => argv.at(-2) === 'sleep' && argv.at(-1) === seconds(n)).length;
const rssMb = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent.pid}/status`, 'utf8'))?.[1]) / 1024;

test('probes that hang are ended one by one, become rarer, cost next to nothing, and no other pod fails for them', {
  timeout: 240_000,
}, async (t) => {
  const began = performance.now();
  drop(pod('stuck', { containers: [container('main', undefined, { readinessProbe: probe('sleep', seconds(0)) })] }));
  drop(pod('forks', { containers: [container('main', undefined, { readinessProbe: probe('sh', '-c', `sleep ${seconds(1)} & wait`) })] }));
  drop(pod('slow', { containers: [container('main', undefined, { livenessProbe: probe('sleep', seconds(2)) })] }));
  drop(
    pod('good', {
      containers: [
        // `true` alone may take more than a second on a busy machine
        container('main', undefined, {
          readinessProbe: { ...probe('true'), timeoutSeconds: 5 },
          livenessProbe: { ...probe('true'), timeoutSeconds: 5, failureThreshold: 1 },
        }),
      ],
    }),
  );
  await until('they hang', 60_000, () => running(0) > 0 && running(1) > 0);
  await until('the good one is ready', 60_000, async () => conditionOf(await podOf('good'), 'Ready') === 'True');
  const [early, most] = [rssMb(), [0, 0, 0]];
  const unready: string[] = [];
  for (const end = performance.now() + 25_000; performance.now() < end; await sleep(100)) {
    for (const n of [0, 1, 2]) most[n] = Math.max(most[n] ?? 0, running(n));
    const good = await podOf('good');
    if (conditionOf(good, 'Ready') !== 'True') unready.push(JSON.stringify(good?.status));
  }
  const [stuck = 0, forks = 0, slow = 0] = most;
  t.diagnostic(`processes at most: ${most}; ${early} MB and then ${rssMb()} MB`);
  assert.ok(stuck <= 2 && slow <= 2, `one at a time, and the one before may be about to go: ${most}`);
  // what a killed shell leaves behind lives until its container ends: rarer questions bound it, three each second, three each other one,
  // and then one in four seconds
  const lasted = (performance.now() - began) / 1000;
  assert.ok(forks <= 8 + (lasted - 11) / 4, `${most} in ${lasted} s`);
  assert.ok(rssMb() - early < 15, `from ${early} MB to ${rssMb()} MB`);
  assert.deepEqual(unready, []);
  assert.equal(statusOf(await podOf('good'), 'main')?.restartCount, 0);
  assert.deepEqual(
    (await eventsOf(agent, 'good')).filter((e) => e.startsWith('Unhealthy')),
    [],
  );
  const told = async (what: string, words: RegExp) =>
    until(what, 45_000, async () => (await eventsOf(agent, 'stuck')).some((e) => words.test(e))).catch(async (e) => {
      throw new Error(`${e}\n${(await eventsOf(agent, 'stuck')).join('\n')}`);
    });
  await told('a time-out is a failure', /^Unhealthy: Readiness probe .*timed? ?out/i);
  await told('it is asked less often', /^ProbeHint: Readiness probe timed out 3 times in a row: .* every 2 s$/);
  await until('also of a liveness probe', 60_000, async () => (statusOf(await podOf('slow'), 'main')?.restartCount ?? 0) >= 1);
  for (const name of ['stuck', 'forks', 'slow', 'good']) agent.removeManifest(`${name}.yaml`);
  await until('nothing of them is left', 60_000, () => [0, 1, 2].every((n) => running(n) === 0));
});
