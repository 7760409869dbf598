/** Every way a manifest can be wrong, on the real agent: it is told where and how, and the pod of the last good text goes on untouched. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { FileStatus, ToldProblem } from '../../src/api/payloads.ts';
import { type Lab, startLab } from './lab.ts';
import { manifest, pod } from './manifest.ts';
import { agreed, footprint, gone, type Seen, toldPod, toldSync } from './truth.ts';

let lab: Lab;
before(async () => {
  lab = await startLab('bad', { config: { fileCheckFrequency: '1s' } });
});
after(() => lab.stop());

/** Each mistake has a pod of its own: `web` in these texts stands for its name. */
const named = (of: string | Buffer, name: string): string | Buffer =>
  typeof of === 'string' ? of.replace('name: web', `name: ${name}`) : of;
const start = async (name: string): Promise<Seen> => {
  lab.agent.drop(`${name}.yaml`, String(named(text, name)));
  return await agreed(lab, name, (p, s) => p.status.phase === 'Running' && s.reason === 'Ready', 60_000);
};

const text = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  terminationGracePeriodSeconds: 2
  containers:
    - name: main
      image: localhost/busybox:1
      command: [sh, -c, "trap 'exit 0' TERM; sleep 2147483647 & wait"]
`;
const swap = (from: string, to: string): string => {
  assert.ok(text.includes(from), from);
  return text.replace(from, to);
};
const addToSpec = (line: string): string => swap('spec:\n', `spec:\n  ${line}\n`);
const addToContainer = (line: string): string => swap('    - name: main\n', `    - name: main\n      ${line}\n`);

interface Wrong {
  readonly what: string;
  readonly text: string | Buffer;
  readonly path: string;
  readonly line?: number;
  readonly column?: number;
  /** In the told problem, somewhere. */
  readonly says: RegExp;
}

const wrongs: readonly Wrong[] = [
  { what: 'an empty file', text: '', path: '', says: /empty/ },
  { what: 'only a comment', text: '# nothing\n', path: '', says: /empty|manifest/ },
  { what: 'half of it', text: text.slice(0, text.indexOf('image')), path: 'spec.containers[0].image', line: 8, says: /image|nothing/ },
  { what: 'cut in a quoted text', text: text.slice(0, text.indexOf('TERM')), path: '', line: 10, says: /quote|YAML/i },
  { what: 'a tab as indent', text: swap('  name: web', '\tname: web'), path: '', line: 4, column: 1, says: /spaces/ },
  {
    what: 'a key twice',
    text: swap('  name: web', '  name: web\n  name: other'),
    path: 'metadata.name',
    line: 5,
    column: 3,
    says: /line 4/,
  },
  { what: 'an unknown kind', text: swap('kind: Pod', 'kind: Deployment'), path: 'kind', line: 2, says: /Deployment/ },
  { what: 'another apiVersion', text: swap('apiVersion: v1', 'apiVersion: apps/v1'), path: 'apiVersion', line: 1, says: /apps\/v1/ },
  { what: 'no name', text: swap('  name: web\n', '  labels: {}\n'), path: 'metadata.name', says: /name|nothing/ },
  { what: 'a name that is none', text: swap('name: web', 'name: Web_1'), path: 'metadata.name', line: 4, column: 9, says: /Web_1/ },
  {
    what: 'a number where a text belongs',
    text: addToContainer('env: [{name: A, value: 5}]'),
    path: 'spec.containers[0].env[0].value',
    line: 9,
    says: /quote/,
  },
  {
    what: 'a text where a number belongs',
    text: swap('Seconds: 2', 'Seconds: soon'),
    path: 'spec.terminationGracePeriodSeconds',
    line: 6,
    says: /soon/,
  },
  { what: 'a negative grace', text: swap('Seconds: 2', 'Seconds: -1'), path: 'spec.terminationGracePeriodSeconds', line: 6, says: /-1/ },
  {
    what: 'a word that is near one',
    text: addToSpec('restartPolicy: Alwyas'),
    path: 'spec.restartPolicy',
    line: 6,
    column: 18,
    says: /"nearest":"Always"/,
  },
  {
    what: 'a field that is not supported yet',
    text: addToSpec('volumes: [{name: a, nfs: {server: b, path: /c}}]'),
    path: 'spec.volumes[0].nfs',
    line: 6,
    says: /not supported/,
  },
  {
    what: 'a memory limit in millibytes',
    text: addToContainer('resources: {limits: {memory: 64m}}'),
    path: 'spec.containers[0].resources.limits[memory]',
    line: 9,
    says: /Mi/,
  },
  {
    what: 'two containers of a name',
    text: `${text}    - {name: main, image: "localhost/busybox:1"}\n`,
    path: 'spec.containers[1].name',
    line: 11,
    says: /main/,
  },
  { what: 'an alias that nobody set', text: addToSpec('hostname: *nobody'), path: 'spec.hostname', line: 6, says: /anchor/ },
  { what: 'bytes that are no text', text: Buffer.from([0xff, 0x00, 0x80, 0x0a]), path: '', line: 1, says: /UTF/ },
  { what: 'a control character', text: swap('main', '"ma\u0001in"'), path: '', line: 8, says: /control/ },
  { what: 'more than a MiB', text: `${text}#${'x'.repeat(1 << 20)}\n`, path: '', says: /1048576|MiB/ },
];

const toldFile = (name: string) => lab.watcher.values.get(lab.agent.topic(`sync/_files/${name}~2eyaml`)) as FileStatus | undefined;
const problems = (status: { readonly problems: readonly ToldProblem[] } | undefined) => status?.problems ?? [];
const fits = (w: Wrong, file: string, p: ToldProblem): boolean =>
  p.path === w.path &&
  p.file === file &&
  (w.line === undefined || p.line === w.line) &&
  (w.column === undefined || p.column === w.column) &&
  w.says.test(JSON.stringify(p));

const untouched = async (good: Seen) => {
  const now = await agreed(lab, good.pod.metadata.name, (p) => p.status.phase === 'Running');
  assert.equal(now.pod.metadata.uid, good.pod.metadata.uid);
  assert.deepEqual(footprint(now.shown), footprint(good.shown));
  assert.deepEqual(now.pod.status, good.pod.status);
};

describe('what is wrong is told with its place: in the topic of the file, in sync, and as an event; the last good pod stays', {
  concurrency: 6,
}, () => {
  for (const [i, wrong] of wrongs.entries()) {
    test(wrong.what, async () => {
      const name = `web-${i}`;
      const file = `${name}.yaml`;
      const good = await start(name);
      const from = lab.watcher.heard.length;
      writeFileSync(join(lab.agent.dir, file), named(wrong.text, name));
      renameSync(join(lab.agent.dir, file), join(lab.agent.manifests, file));
      const told = () => problems(toldFile(name)).some((p) => fits(wrong, file, p));
      await lab.watcher.untilAll(wrong.what, told).catch((e) => assert.fail(`${e.message}: ${JSON.stringify(toldFile(name))}`));
      const sync = () => toldSync(lab, name);
      const refused = () =>
        sync()?.reason === 'EditRefused' &&
        sync()?.sources.some(
          (s) => s.source === `file:${file}` && s.phase === 'Refused' && s.problems.some((p) => fits(wrong, file, p)),
        ) === true;
      await lab.watcher.untilAll(`${wrong.what} in sync`, refused).catch((e) => assert.fail(`${e.message}: ${JSON.stringify(sync())}`));
      assert.equal(sync()?.phase, 'Running', 'what runs goes on');
      assert.equal(sync()?.desired?.revision, good.sync.desired?.revision);
      assert.equal(sync()?.running?.uid, good.pod.metadata.uid);
      const place = wrong.line === undefined ? file : `${file}:${wrong.line}:`;
      const events = () => lab.watcher.heard.slice(from).filter((h) => h.topic.includes('/events/') && h.text.includes(place));
      await lab.watcher.untilAll(`an event about ${place}`, () => events().length > 0);
      await untouched(good);
      // good again, nothing is told of the file any more
      lab.agent.drop(file, String(named(text, name)));
      await lab.watcher.untilAll('good again', () => toldFile(name) === undefined && sync()?.reason === 'Ready');
      await untouched(good);
    });
  }

  // a pipe and a link are renamed over the file; a folder cannot be, and the name is absent for a moment as short as an editor's
  for (const [what, name, make] of [
    ['a pipe in the place of the file', 'pipe', (beside: string) => execFileSync('mkfifo', [beside])],
    ['a link to nowhere in the place of the file', 'link', (beside: string) => symlinkSync('/not/there', beside)],
    ['a folder in the place of the file', 'folder', (beside: string) => mkdirSync(beside)],
  ] as const) {
    test(what, async () => {
      const good = await start(name);
      const [file, beside] = [join(lab.agent.manifests, `${name}.yaml`), join(lab.agent.dir, name)];
      make(beside);
      // however long this process is kept from its next step, the agent does not look in between
      if (name === 'folder') {
        lab.agent.signal('SIGSTOP');
        rmSync(file);
      }
      renameSync(beside, file);
      if (name === 'folder') lab.agent.signal('SIGCONT');
      await lab.watcher.untilAll(what, () => problems(toldFile(name)).length > 0);
      await lab.watcher.untilAll(`${what} in sync`, () => toldSync(lab, name)?.reason === 'EditRefused');
      await untouched(good);
    });
  }
});

test('a manifest that is bad from the start has no pod, and a good one takes its place when it is mended', async () => {
  lab.agent.drop('new.yaml', manifest(pod('new', { restartPolicy: 'Sometimes' })));
  const topic = lab.agent.topic('sync/default/new');
  await lab.watcher.until(topic, (s) => (s as { phase?: string } | undefined)?.phase === 'Refused');
  assert.equal(toldPod(lab, 'new'), undefined);
  lab.agent.drop('new.yaml', manifest(pod('new')));
  await agreed(lab, 'new', (p, s) => p.status.phase === 'Running' && s.reason === 'Ready');
  lab.agent.removeManifest('new.yaml');
  await gone(lab, 'new');
});

test('of several documents in a file the broken one alone is refused, and the others run', async () => {
  const many = (second: string) => `${manifest(pod('first'))}\n---\n${second}\n---\n${manifest(pod('third'))}\n`;
  lab.agent.drop('many.yaml', many(manifest(pod('second'))));
  const before = await Promise.all(['first', 'second', 'third'].map((n) => agreed(lab, n, (p) => p.status.phase === 'Running')));
  lab.agent.drop('many.yaml', many(manifest(pod('second', { containers: 5 }))));
  await lab.watcher.until(lab.agent.topic('sync/default/second'), (s) => JSON.stringify(s ?? {}).includes('"Refused"'));
  const now = await Promise.all(['first', 'second', 'third'].map((n) => agreed(lab, n, (p) => p.status.phase === 'Running')));
  assert.deepEqual(
    now.map((s) => footprint(s.shown)),
    before.map((s) => footprint(s.shown)),
  );
  lab.agent.removeManifest('many.yaml');
  await Promise.all(['first', 'second', 'third'].map((n) => gone(lab, n)));
});

test('the same pod in two files: the one that runs goes on, the other is named, and takes over when the first goes', async () => {
  const good = await start('twice');
  lab.agent.drop('a-copy.yaml', String(named(text, 'twice')));
  await lab.watcher.until(lab.agent.topic('sync/default/twice'), (s) => JSON.stringify(s ?? {}).includes('"Shadowed"'));
  await untouched(good);
  lab.agent.removeManifest('twice.yaml');
  const now = await agreed(
    lab,
    'twice',
    (p, s) => p.metadata.annotations?.['podsched.dev/source'] === 'file:a-copy.yaml' && s.desired?.source === 'file:a-copy.yaml',
  );
  assert.deepEqual(footprint(now.shown), footprint(good.shown));
  assert.deepEqual(lab.witness.offences, []);
});
