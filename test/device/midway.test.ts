/** The agent is killed in the middle of what takes time: a probe that is rare, a hook that runs. What was found stays found, what was begun is ended. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import type { Lab } from './lab.ts';
import { container, type Fields, type PodText, pod } from './manifest.ts';
import { sleep, until } from './process.ts';
import { conditionOf, type Diary, dropPod, eventsOf, setStage, sh, statusOf, stay, uptime } from './story.ts';
import { agreed, footprint, gone, shownOf, toldPod } from './truth.ts';

let lab: Lab;
let diary: Diary;
setStage('midway', (stage) => {
  ({ lab, diary } = stage);
});

const drop = (of: PodText): string => dropPod(lab, of);
const member = (script: string, more: Fields = {}) => container('main', sh(script), { volumeMounts: [diary.mount], ...more });
const story = (name: string, script: string, more: Fields, graceSeconds: number) =>
  pod(name, { terminationGracePeriodSeconds: graceSeconds, volumes: [diary.volume], containers: [member(script, more)] });
const exec = (...command: string[]) => ({ exec: { command }, periodSeconds: 15, timeoutSeconds: 10 });
const seqOf = (p: ToldPod | undefined): number => Number(p?.metadata.annotations?.['podsched.dev/seq'] ?? 0);

describe('killed in the middle', () => {
  test('what rare probes have found is not forgotten: nothing of it is told otherwise after a start, and no startup probe runs again', async () => {
    const good = drop(pod('good', { containers: [container('main', undefined, { readinessProbe: exec('true') })] }));
    const bad = drop(pod('bad', { containers: [container('main', undefined, { readinessProbe: exec('false') })] }));
    const slow = drop(
      story(
        'slow',
        stay('slow'),
        {
          startupProbe: { ...exec(...sh('note "slow asked"')), periodSeconds: 1, timeoutSeconds: 30 },
          readinessProbe: exec('true'),
          livenessProbe: exec('true'),
        },
        2,
      ),
    );
    const names = [good, bad, slow];
    const first = await Promise.all(
      names.map((n) =>
        agreed(
          lab,
          n,
          (p) => p.status.phase === 'Running' && statusOf(p, 'main')?.ready === (n !== bad) && statusOf(p, 'main')?.started === true,
          60_000,
          n === bad,
        ),
      ),
    );
    await until('the bad one was asked', 60_000, async () => (await eventsOf(lab.agent, bad)).some((e) => e.startsWith('Unhealthy')));
    await sleep(1_100); // a time told anew would be another one
    for (let round = 0; round < 3; round++) {
      const heard = lab.watcher.heard.length;
      const seq = new Map(names.map((n) => [n, seqOf(toldPod(lab, n))]));
      await lab.agent.kill9();
      await sleep(300);
      lab.agent.start();
      await Promise.all(names.map((n) => agreed(lab, n, (p) => seqOf(p) > (seq.get(n) ?? 0), 60_000, n === bad)));
      await sleep(2_500); // whatever would come after the start
      for (const { topic, text } of lab.watcher.heard.slice(heard))
        for (const [i, n] of names.entries())
          if (topic.endsWith(`/pods/default/${n}`)) assert.deepEqual((JSON.parse(text) as ToldPod).status, first[i]?.pod.status, n);
    }
    assert.equal(diary.entries().filter((e) => e.text === 'slow asked').length, 1);
    for (const { pod: p, shown } of first) {
      const { name } = p.metadata;
      assert.deepEqual(footprint(await shownOf(lab, name)), footprint(shown), name);
    }
  });

  test('while a preStop hook runs: the next agent ends the pod with a whole hook of its own, then TERM, within a grace', async () => {
    const hook = { exec: { command: sh('note "hooked asks"; sleep 4; note "hooked is done"') } };
    const name = drop(story('hooked', stay('hooked'), { lifecycle: { preStop: hook } }, 12));
    await agreed(lab, name, (p) => conditionOf(p, 'Ready') === 'True');
    lab.agent.removeManifest(`${name}.yaml`);
    await diary.of('hooked asks');
    await sleep(1_000);
    await lab.agent.kill9();
    const killedAt = uptime();
    lab.agent.start();
    const again = await diary.of('hooked asks', undefined, killedAt);
    await gone(lab, name);
    const term = await diary.of('hooked TERM');
    const done = diary.entries().filter((e) => e.text === 'hooked is done' && e.at <= term.at);
    assert.ok(
      done.some((e) => e.at >= again.at),
      'the second hook ran to its end before TERM',
    );
    assert.ok(term.at - again.at < 12 && uptime() - killedAt < 45);
    assert.equal(diary.entries().filter((e) => e.text === 'hooked begins').length, 1, 'it never started again');
  });

  test('while a postStart hook hangs: the container goes on as it is, is not started again, and ends when it is removed', async () => {
    const name = drop(
      story('hung', stay('hung'), { lifecycle: { postStart: { exec: { command: sh('note "hung asks"; sleep 1000') } } } }, 3),
    );
    await diary.of('hung asks');
    const before = footprint(await shownOf(lab, name));
    assert.notEqual(conditionOf(toldPod(lab, name), 'Ready'), 'True');
    await lab.agent.kill9();
    lab.agent.start();
    // nobody knows any more that a hook was asked, as with the kubelet: the container runs
    const now = await agreed(lab, name, (p) => p.status.phase === 'Running' && conditionOf(p, 'Ready') === 'True');
    assert.deepEqual(footprint(now.shown), before);
    assert.equal(diary.entries().filter((e) => e.text === 'hung asks').length, 1);
    const from = uptime();
    lab.agent.removeManifest(`${name}.yaml`);
    await gone(lab, name);
    assert.ok(uptime() - from < 45, 'not held up by a hook of 1000 s');
    await diary.of('hung TERM');
  });

  test('a postStart hook that hangs is cut when its pod is removed, and holds up no other pod', async () => {
    const name = drop(
      story('stuck', stay('stuck'), { lifecycle: { postStart: { exec: { command: sh('note "stuck asks"; sleep 1000') } } } }, 3),
    );
    await diary.of('stuck asks');
    const other = drop(pod('other'));
    await agreed(lab, other, (p) => conditionOf(p, 'Ready') === 'True');
    const from = uptime();
    lab.agent.removeManifest(`${name}.yaml`);
    await gone(lab, name);
    assert.ok(uptime() - from < 45, `${uptime() - from} s, and the hook takes 1000 s`);
    await diary.of('stuck TERM');
  });
});

test('no two instances or containers lived together', () => {
  assert.deepEqual(lab.witness.offences, []);
});
