/** What a bad card does to the agent's own files: each of them in turn is empty, cut, garbage or a folder. The agent starts, and no pod is touched. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, before, test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import { type Lab, startLab } from './lab.ts';
import { container, exit, manifest, pod } from './manifest.ts';
import { agreed, footprint, type Seen, toldPod } from './truth.ts';

let lab: Lab;
let known: ReadonlyMap<string, Seen>;
const seqOf = (p: ToldPod | undefined): number => Number(p?.metadata.annotations?.['podsched.dev/seq'] ?? 0);
/** Everything runs, or everything has ended and its sandbox was stopped too. */
const settled = (p: ToldPod): boolean =>
  p.status.phase === 'Succeeded' || p.status.phase === 'Failed'
    ? p.status.conditions?.find((c) => c.type === 'PodReadyToStartContainers')?.status === 'False'
    : (p.status.containerStatuses ?? []).every((c) => c.ready);

before(async () => {
  lab = await startLab('torn');
  const drop = (...of: Parameters<typeof pod>) => lab.agent.drop(`${of[0]}.yaml`, manifest(pod(...of)));
  drop('plain');
  drop('replaced');
  drop('edited', { containers: [container('a'), container('b')] });
  drop('done', { restartPolicy: 'Never', containers: [container('main', exit(0))] });
  const names = ['plain', 'replaced', 'edited', 'done'];
  await Promise.all(names.map((n) => agreed(lab, n, settled)));
  // so that the previous copies of their entries speak of another instance, and of another container
  drop('replaced', { containers: [container('main'), container('second')] });
  drop('edited', { containers: [container('a'), container('b', undefined, { env: [{ name: 'EDITED', value: 'yes' }] })] });
  await agreed(lab, 'replaced', (p) => settled(p) && p.spec.containers.length === 2);
  await agreed(lab, 'edited', (p) => settled(p) && p.status.containerStatuses?.[1]?.restartCount === 1);
  known = new Map(
    await Promise.all(
      names.map(async (n) => [n, await agreed(lab, n, (p, s) => settled(p) && /^(Ready|Succeeded)$/.test(s.reason))] as const),
    ),
  );
});
after(() => lab.stop());

const damages: readonly [string, (file: string) => void][] = [
  ['empty', (file) => writeFileSync(file, '')],
  ['cut in half', (file) => writeFileSync(file, readFileSync(file).subarray(0, Math.floor(readFileSync(file).length / 2)))],
  ['garbage', (file) => writeFileSync(file, Buffer.from(Array.from({ length: 300 }, (_, i) => (i * 151) & 255)))],
  [
    'a folder',
    (file) => {
      rmSync(file);
      mkdirSync(join(file, 'inside'), { recursive: true });
    },
  ],
];

/** The agent's own files now, without previous copies and the socket. */
const files = (): string[] =>
  [lab.agent.stateDir, lab.agent.runDir]
    .flatMap((dir) => readdirSync(dir, { recursive: true, withFileTypes: true }))
    .filter((e) => e.isFile() && e.name.endsWith('.json'))
    .map((e) => join(e.parentPath, e.name))
    .sort();

async function startsAndTouchesNothing(before: ReadonlyMap<string, number>): Promise<void> {
  lab.agent.start();
  await Promise.all(
    [...known].map(async ([name, first]) => {
      const now = await agreed(lab, name, (p) => seqOf(p) > (before.get(name) ?? 0) && settled(p));
      assert.equal(now.pod.metadata.uid, first.pod.metadata.uid, name);
      assert.deepEqual(footprint(now.shown), footprint(first.shown), name);
    }),
  );
  assert.ok(lab.agent.running());
}
const seqs = () => new Map([...known.keys()].map((name) => [name, seqOf(toldPod(lab, name))]));

for (const [turn, [what, damage]] of damages.entries()) {
  test(`one of its files is ${what}: it starts, and no pod is touched`, async () => {
    // the kinds of damage take turns over the files, so that every file has two of them
    const chosen = files().filter((_, i) => (i + turn) % 2 === 0);
    assert.ok(chosen.length >= 5, `${chosen}`);
    for (const file of chosen) {
      const before = seqs();
      await lab.agent.kill9();
      damage(file);
      await startsAndTouchesNothing(before).catch((e) =>
        assert.fail(`${relative(lab.agent.dir, file)} ${what}: ${e.message}\n${lab.agent.log().slice(-1500)}`),
      );
    }
  });
}

test('a file and its previous copy are both lost: it starts, and no pod is touched', async () => {
  for (const file of files()) {
    const before = seqs();
    await lab.agent.kill9();
    for (const copy of [file, `${file}.prev`]) {
      rmSync(copy, { force: true });
      writeFileSync(copy, 'lost');
    }
    await startsAndTouchesNothing(before).catch((e) =>
      assert.fail(`${relative(lab.agent.dir, file)}: ${e.message}\n${lab.agent.log().slice(-1500)}`),
    );
  }
});

test('everything that it ever wrote is lost: it starts, and no pod is touched', async () => {
  const before = seqs();
  await lab.agent.kill9();
  for (const dir of [lab.agent.stateDir, lab.agent.runDir]) rmSync(dir, { recursive: true });
  await startsAndTouchesNothing(before);
  assert.deepEqual(lab.witness.offences, []);
});
