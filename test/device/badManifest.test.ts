/** Every way a manifest can be wrong, on the real agent: it is told where and how, and the pod of the last good text goes on untouched. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { FileStatus, ToldProblem } from '../../src/api/payloads.ts';
import { type Lab, startLab } from './lab.ts';
import { manifest, pod } from './manifest.ts';
import { agreed, footprint, gone, type Seen, toldPod, toldSync } from './truth.ts';

let lab: Lab;
let good: Seen;
before(async () => {
  lab = await startLab('bad', { config: { fileCheckFrequency: '1s' } });
  lab.agent.drop('web.yaml', text);
  good = await agreed(lab, 'web', (p, s) => p.status.phase === 'Running' && s.reason === 'Ready');
});
after(() => lab.stop());

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
    text: addToSpec('volumes: [{name: a, emptyDir: {}}]'),
    path: 'spec.volumes',
    line: 6,
    says: /not supported/,
  },
  {
    what: 'a memory limit in millibytes',
    text: addToContainer('resources: {limits: {memory: 64m}}'),
    path: 'spec.containers[0].resources.limits.memory',
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
  { what: 'an alias that nobody set', text: addToSpec('hostname: *nobody'), path: '', line: 6, says: /nobody/ },
  { what: 'bytes that are no text', text: Buffer.from([0xff, 0x00, 0x80, 0x0a]), path: '', line: 1, says: /UTF/ },
  { what: 'a control character', text: swap('main', '"ma\u0001in"'), path: '', line: 8, says: /control/ },
  { what: 'more than a MiB', text: `${text}#${'x'.repeat(1 << 20)}\n`, path: '', says: /1048576|MiB/ },
];

const fileTopic = () => lab.agent.topic('sync/_files/web~2eyaml');
const toldFile = () => lab.watcher.values.get(fileTopic()) as FileStatus | undefined;
const problems = (status: { readonly problems: readonly ToldProblem[] } | undefined) => status?.problems ?? [];
const fits = (w: Wrong, p: ToldProblem): boolean =>
  p.path === w.path &&
  p.file === 'web.yaml' &&
  (w.line === undefined || p.line === w.line) &&
  (w.column === undefined || p.column === w.column) &&
  w.says.test(JSON.stringify(p));

const untouched = async () => {
  const now = await agreed(lab, 'web', (p) => p.status.phase === 'Running');
  assert.equal(now.pod.metadata.uid, good.pod.metadata.uid);
  assert.deepEqual(footprint(now.shown), footprint(good.shown));
  assert.deepEqual(now.pod.status, good.pod.status);
};

for (const wrong of wrongs) {
  test(`${wrong.what}: told with its place in the file's topic, in sync and as an event; the last good pod stays`, async () => {
    const from = lab.watcher.heard.length;
    writeFileSync(join(lab.agent.dir, 'next'), wrong.text);
    execFileSync('mv', [join(lab.agent.dir, 'next'), join(lab.agent.manifests, 'web.yaml')]);
    await lab.watcher
      .untilAll(wrong.what, () => problems(toldFile()).some((p) => fits(wrong, p)), 10_000)
      .catch((e) => assert.fail(`${e.message}: ${JSON.stringify(toldFile())}`));
    const refused = (sync = toldSync(lab, 'web')) =>
      sync?.sources.find((s) => s.source === 'file:web.yaml' && s.phase === 'Refused' && s.problems.some((p) => fits(wrong, p)));
    await lab.watcher
      .untilAll(`${wrong.what} in sync`, () => refused() !== undefined, 10_000)
      .catch((e) => assert.fail(`${e.message}: ${JSON.stringify(toldSync(lab, 'web'))}`));
    const sync = toldSync(lab, 'web');
    assert.equal(sync?.phase, 'Running', 'what runs goes on');
    assert.equal(sync?.desired?.revision, good.sync.desired?.revision);
    assert.equal(sync?.running?.uid, good.pod.metadata.uid);
    assert.match(sync?.reason ?? '', /^(Invalid|SourceUnreadable)$/);
    const events = () => lab.watcher.heard.slice(from).filter((h) => h.topic.includes('/events/') && h.text.includes('web.yaml'));
    const place = wrong.line === undefined ? 'web.yaml' : `web.yaml:${wrong.line}:`;
    await lab.watcher.untilAll(`an event about ${place}`, () => events().some((h) => h.text.includes(place)), 10_000);
    await untouched();
  });
}

test('the same with what is no file: a folder, a pipe, a link to nowhere', async () => {
  const at = join(lab.agent.manifests, 'web.yaml');
  const kinds: [string, () => void, () => void][] = [
    ['a folder', () => mkdirSync(at), () => rmdirSync(at)],
    ['a pipe', () => execFileSync('mkfifo', [at]), () => unlinkSync(at)],
    ['a link to nowhere', () => execFileSync('ln', ['-s', '/not/there', at]), () => unlinkSync(at)],
  ];
  for (const [what, make, remove] of kinds) {
    // renamed over it, so that the name is never absent: an absent file would delete
    lab.agent.drop('web.yaml', text);
    await lab.watcher.untilAll('good again', () => toldFile() === undefined, 10_000);
    execFileSync('sh', [
      '-c',
      `mv "$1" "$1.away"; ${what === 'a folder' ? 'mkdir' : what === 'a pipe' ? 'mkfifo' : 'ln -s /not/there'} "$1"`,
      'sh',
      at,
    ]);
    void make;
    await lab.watcher.untilAll(what, () => problems(toldFile()).length > 0, 10_000).catch((e) => assert.fail(`${e.message}: ${what}`));
    await untouched();
    remove();
    execFileSync('mv', [`${at}.away`, at]);
  }
});

test('good again, nothing is told of the file any more, and the pod was never touched', async () => {
  lab.agent.drop('web.yaml', text);
  await lab.watcher.untilAll('good again', () => toldFile() === undefined && toldSync(lab, 'web')?.reason === 'Ready', 10_000);
  await untouched();
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
  await lab.watcher.until(lab.agent.topic('sync/default/second'), (s) => JSON.stringify(s).includes('"Refused"'));
  const now = await Promise.all(['first', 'second', 'third'].map((n) => agreed(lab, n, (p) => p.status.phase === 'Running')));
  assert.deepEqual(
    now.map((s) => footprint(s.shown)),
    before.map((s) => footprint(s.shown)),
  );
  lab.agent.removeManifest('many.yaml');
  await Promise.all(['first', 'second', 'third'].map((n) => gone(lab, n)));
});

test('the same pod in two files: the one that runs goes on, the other is named, and takes over when the first goes', async () => {
  lab.agent.drop('a-copy.yaml', text);
  await lab.watcher.until(lab.agent.topic('sync/default/web'), (s) => JSON.stringify(s).includes('"Shadowed"'));
  await untouched();
  lab.agent.removeManifest('web.yaml');
  await lab.watcher.until(
    lab.agent.topic('sync/default/web'),
    (s) => (s as { desired?: { source?: string } }).desired?.source === 'file:a-copy.yaml',
  );
  const now = await agreed(lab, 'web', (p) => p.metadata.annotations?.['podsched.dev/source'] === 'file:a-copy.yaml');
  assert.deepEqual(footprint(now.shown), footprint(good.shown));
  assert.deepEqual(lab.witness.offences, []);
});
