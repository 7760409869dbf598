/** Updates of running pods on a real containerd and registry: the new image first, the way back, and a hold. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { SyncStatus } from '../../src/api/payloads.ts';
import { type Agent, startAgent } from './agent.ts';
import { beating, gap, longestSilence } from './beats.ts';
import { type Bed, startBed } from './bed.ts';
import { type ImageRegistry, startImageRegistry } from './imageRegistry.ts';
import { busybox2 } from './images.ts';
import { type Fields, manifest, pod } from './manifest.ts';
import { sleep, until } from './process.ts';
import { type Diary, eventsOf, startDiary, uptime } from './story.ts';

const graceSeconds = 2;
/** The old one takes all of its grace. How quick the new one is then the bench measures: this much more even a busy machine does not need. */
const mostDown = graceSeconds + 5;
const linkBytesPerSecond = 2_000_000;
const imageBytes = 16_000_000;

let bed: Bed;
let registry: ImageRegistry;
let agent: Agent;
before(async () => {
  [bed, registry] = await Promise.all([startBed({ name: 'update' }), startImageRegistry()]);
  agent = await startAgent(bed, { nodeName: 'update' });
});
after(async () => {
  await agent?.remove();
  await Promise.all([registry?.stop(), bed?.stop()]);
});

/** undefined also while the agent starts. */
const sync = async (name: string): Promise<SyncStatus | undefined> => {
  const answer = await agent.get(`/sync?name=${name}`).catch(() => undefined); // nobody listens yet
  return answer?.status === 200 ? (JSON.parse(answer.body) as { items: SyncStatus[] }).items[0] : undefined;
};
const says = (name: string, phase: SyncStatus['phase'], timeoutMs = 90_000): Promise<void> =>
  until(`${name} to be ${phase}`, timeoutMs, async () => (await sync(name))?.phase === phase).catch(async (e) => {
    throw new Error(`${e}: ${JSON.stringify(await sync(name))}\n${agent.log().slice(-3000)}`);
  });

function beatingPod(
  name: string,
  image: string,
  diary: Diary,
  more: { readonly container?: Fields; readonly annotations?: Fields } = {},
): string {
  const main = { name: 'main', image, command: ['sh', '-c', beating('$IMAGE_VERSION')], volumeMounts: [diary.mount], ...more.container };
  const spec = { terminationGracePeriodSeconds: graceSeconds, volumes: [diary.volume], containers: [main] };
  return manifest(pod(name, spec, more.annotations === undefined ? {} : { annotations: more.annotations }));
}

/** For how many seconds after the edit version 1 was heard, and how long then nobody. */
function changeover(diary: Diary, edited: number): { readonly served: number; readonly down: number } {
  const down = gap(diary, '1', '2');
  const next = diary.entries().find((e) => e.text === 'beat 2')?.at ?? Number.NaN;
  return { served: next - down - edited, down };
}

describe('an update of a running pod', () => {
  test('F7: an image that comes over a slow link is here before the old one is stopped: it serves while the image comes', async (t) => {
    const diary = startDiary();
    t.after(() => diary.end());
    const image = await registry.push(busybox2, { name: 'slow:2', extraBytes: imageBytes });
    registry.setFault({ does: 'slow', bytesPerSecond: linkBytesPerSecond, on: 'blob' });
    t.after(() => registry.setFault(undefined));
    agent.drop('slow.yaml', beatingPod('slow', 'localhost/busybox:1', diary));
    await says('slow', 'Running');
    const first = await diary.of('beat 1');
    const edited = uptime();
    agent.drop('slow.yaml', beatingPod('slow', image, diary));
    await says('slow', 'UpdateBlocked');
    const waiting = await sync('slow');
    assert.equal(waiting?.reason, 'PullingImage');
    assert.match(waiting?.message ?? '', /slow:2/);
    await diary.of('beat 2', 120_000);
    const { served, down } = changeover(diary, edited);
    t.diagnostic(`served ${served.toFixed(1)} s after the edit, then down for ${down.toFixed(2)} s`);
    assert.ok(served > imageBytes / linkBytesPerSecond, `the image cannot be here yet: ${served} s after the edit`);
    assert.ok(down < mostDown, `down for ${down} s`);
    assert.ok(longestSilence(diary, first.at) <= down, 'silent only then');
    await says('slow', 'Running');
    agent.removeManifest('slow.yaml');
  });

  test('a tag that is not there: the old one keeps serving, over a restart of the agent too, and the new one comes when the tag does', async (t) => {
    const diary = startDiary();
    t.after(() => diary.end());
    agent.drop('missing.yaml', beatingPod('missing', 'localhost/busybox:1', diary));
    await says('missing', 'Running');
    await diary.of('beat 1');
    const edited = uptime();
    agent.drop('missing.yaml', beatingPod('missing', `${registry.host}/late:2`, diary));
    await until('the pull to fail', 90_000, async () => /^(ErrImagePull|ImagePullBackOff)$/.test((await sync('missing'))?.reason ?? ''));
    const blocked = await sync('missing');
    assert.equal(blocked?.phase, 'UpdateBlocked');
    assert.notEqual(blocked?.running?.revision, blocked?.desired?.revision);
    await agent.kill9();
    agent.start();
    await says('missing', 'UpdateBlocked');
    await sleep(3_000);
    const all = (await bed.cri.containers()).filter((c) => c.labels['io.kubernetes.pod.name'] === 'missing');
    assert.deepEqual(
      all.map((c) => c.state),
      ['running'],
      'the one that runs is the only one there ever was',
    );
    await registry.push(busybox2, { name: 'late:2' });
    await diary.of('beat 2', 90_000);
    const { served, down } = changeover(diary, edited);
    t.diagnostic(`served ${served.toFixed(1)} s after the edit, then down for ${down.toFixed(2)} s`);
    assert.ok(down < mostDown, `down for ${down} s`);
    agent.removeManifest('missing.yaml');
  });

  test('F8: a revision that does not become Ready goes back at its time; hold lets an edit wait, release lets it go on', async (t) => {
    const diary = startDiary();
    t.after(() => diary.end());
    const of = (version: number, why: string) =>
      beatingPod('back', `localhost/busybox:${version}`, diary, {
        annotations: { 'podsched.dev/rollback': '10s', 'example.org/why': why },
        container: {
          readinessProbe: { exec: { command: ['sh', '-c', '[ "$IMAGE_VERSION" = 1 ]'] }, periodSeconds: 1, timeoutSeconds: 10 },
        },
      });
    agent.drop('back.yaml', of(1, 'first'));
    await says('back', 'Running');
    await until('it is Ready', 60_000, async () => (await sync('back'))?.reason === 'Ready');
    // Ready counts after ten seconds
    await sleep(11_000);
    const v1 = (await sync('back'))?.desired?.revision;
    const begun = performance.now();
    agent.drop('back.yaml', of(2, 'second'));
    await diary.of('beat 2');
    await says('back', 'RolledBack');
    const took = (performance.now() - begun) / 1000;
    assert.ok(took > 10, `after ${took} s`);
    const rolled = await sync('back');
    assert.equal(rolled?.running?.revision, v1);
    assert.notEqual(rolled?.desired?.revision, v1);
    assert.match(
      rolled?.message ?? '',
      new RegExp(`^revision ${rolled?.desired?.revision} was not Ready in 10s: .+; revision ${v1} runs again$`),
    );
    assert.ok((await eventsOf(agent, 'back')).some((e) => e.startsWith('RolledBack: ')));

    assert.equal((await agent.cli('hold', 'back')).code, 0);
    agent.drop('back.yaml', of(1, 'third').replace('"beat ', '"bump ').replace('beat $', 'bump $'));
    await says('back', 'Held');
    assert.match((await sync('back'))?.message ?? '', /the command podsched hold/);
    await agent.restart();
    await says('back', 'Held');
    const released = await agent.cli('release', 'back');
    assert.deepEqual([released.code, released.stdout], [0, 'pod/back released\n']);
    await diary.of('bump 1');
    await says('back', 'Running');
    agent.removeManifest('back.yaml');
  });
});
