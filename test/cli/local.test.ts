/** `apply`, `delete` and `diff` on the manifest folder of this machine. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { applyLocal } from '../../src/cli/apply.ts';
import { deleteLocal } from '../../src/cli/delete.ts';
import { diffLocal } from '../../src/cli/diff.ts';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';

const pod = (name: string, image = 'app:1'): string =>
  `# of the kitchen\napiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: app, image: "${image}"}]}\n`;
const configMap = (name: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: kitchen}\ndata: {a: b}\n`;
const secret = (value: string): string => `apiVersion: v1\nkind: Secret\nmetadata: {name: tls}\nstringData: {password: ${value}}\n`;
const ends = (code: number, text: RegExp) => (e: unknown) => {
  assert.ok(e instanceof CommandError, String(e));
  assert.match(e.message, text);
  assert.equal(e.code, code);
  return true;
};

interface Bed {
  readonly manifests: string;
  readonly said: () => string;
  readonly err: string[];
  readonly names: () => string[];
  read(name: string): string;
  /** A file outside of the folder. */
  file(text: string, name?: string): string;
  place(name: string, text: string): void;
  apply(...files: string[]): Promise<number>;
  remove(names: readonly string[], files?: readonly string[], namespace?: string): Promise<number>;
  diff(...files: string[]): Promise<number>;
}

async function withFolder(work: (bed: Bed) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-folder-'));
  const manifests = join(dir, 'manifests');
  mkdirSync(manifests);
  const config = join(dir, 'agent.yaml');
  writeFileSync(config, `apiVersion: podsched.dev/v1\nkind: PodschedConfiguration\nstaticPodPath: ${manifests}\n`);
  const out: string[] = [];
  const err: string[] = [];
  const print = { out: (t: string) => out.push(t), err: (t: string) => err.push(t), nowMs: () => 0, sleep: async () => {} };
  const world = { env: {}, stdin: async () => new TextEncoder().encode(pod('piped')) };
  let files = 0;
  try {
    await work({
      manifests,
      err,
      said: () => out.splice(0).join(''),
      names: () => readdirSync(manifests).sort(),
      read: (name) => readFileSync(join(manifests, name), 'utf8'),
      file: (text, name = `${++files}.yaml`) => {
        writeFileSync(join(dir, name), text);
        return join(dir, name);
      },
      place: (name, text) => writeFileSync(join(manifests, name), text),
      apply: (...filename) => applyLocal({ filename, config }, world, print),
      remove: (names, filename = [], namespace = 'default') => deleteLocal(names, { filename, namespace, config }, world, print),
      diff: (...filename) => diffLocal({ filename, config }, world, print),
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

test('apply writes one file for each object, comments and all where the file holds nothing else', () =>
  withFolder(async (bed) => {
    assert.equal(await bed.apply(bed.file(pod('web')), bed.file(`${configMap('app')}---\n${secret('hunter2')}`), '-'), exitCodes.done);
    assert.deepEqual(bed.names(), [
      'default.piped.pod.yaml',
      'default.tls.secret.yaml',
      'default.web.pod.yaml',
      'kitchen.app.configmap.yaml',
    ]);
    assert.equal(bed.read('default.web.pod.yaml'), pod('web'));
    assert.match(bed.read('kitchen.app.configmap.yaml'), /^kind: ConfigMap$/m);
    assert.equal(statSync(join(bed.manifests, 'default.tls.secret.yaml')).mode & 0o777, 0o600);
    assert.equal(bed.said(), 'configmap/app created\nsecret/tls created\npod/web created\npod/piped created\n');
    assert.equal(await bed.apply(bed.file(pod('web'))), exitCodes.done);
    assert.equal(await bed.apply(bed.file(pod('web', 'app:2'))), exitCodes.done);
    assert.equal(bed.said(), 'pod/web unchanged\npod/web configured\n');
    assert.match(bed.read('default.web.pod.yaml'), /app:2/);
  }));

test('an object that stands in another file is not written a second time', () =>
  withFolder(async (bed) => {
    bed.place('mine.yaml', pod('web'));
    await assert.rejects(
      bed.apply(bed.file(`${configMap('app')}---\n${pod('web', 'app:2')}`)),
      ends(exitCodes.failed, /pod\/web stands in .*mine\.yaml: change it there/),
    );
    await assert.rejects(bed.apply(join(bed.manifests, 'mine.yaml')), ends(exitCodes.failed, /which the agent reads already/));
    assert.deepEqual(bed.names(), ['mine.yaml'], 'nothing of it is written');
  }));

test('a file of our name in which somebody has put more is not written over', () =>
  withFolder(async (bed) => {
    bed.place('default.web.pod.yaml', `${pod('web')}---\n${pod('cam')}`);
    await assert.rejects(bed.apply(bed.file(pod('web', 'app:2'))), ends(exitCodes.failed, /stands in .*default\.web\.pod\.yaml/));
    assert.match(bed.read('default.web.pod.yaml'), /cam/);
  }));

test('what is wrong is named with its place, and nothing is written', () =>
  withFolder(async (bed) => {
    await assert.rejects(
      bed.apply(bed.file(pod('good')), bed.file(pod('bad').replace('image', 'imagge'), 'bad.yaml')),
      ends(exitCodes.failed, /nothing was changed/),
    );
    assert.match(bed.err.join(''), /bad\.yaml:5/);
    assert.deepEqual(bed.names(), []);
    await assert.rejects(bed.apply('/nowhere.yaml'), ends(exitCodes.failed, /nothing was changed/));
  }));

test('the signature that lies beside a file goes with it, and an old one does not stay', () =>
  withFolder(async (bed) => {
    const signed = bed.file(pod('web'), 'web.yaml');
    bed.file('{"signature":1}', 'web.yaml.sig');
    await bed.apply(signed);
    assert.deepEqual(bed.names(), ['default.web.pod.yaml', 'default.web.pod.yaml.sig']);
    await bed.apply(bed.file(pod('web', 'app:2')));
    assert.deepEqual(bed.names(), ['default.web.pod.yaml']);
    const envelope = JSON.stringify({ payloadType: 'x', payload: Buffer.from(pod('cam')).toString('base64'), signatures: [{ sig: 'x' }] });
    await bed.apply(bed.file(envelope, 'cam.json'));
    assert.equal(bed.read('default.cam.pod.yaml'), pod('cam'));
    assert.equal(bed.read('default.cam.pod.yaml.sig'), envelope);
  }));

test('delete removes a file that holds nothing else', () =>
  withFolder(async (bed) => {
    await bed.apply(bed.file(`${pod('web')}---\n${configMap('app')}`));
    bed.place('mine.yaml', pod('cam'));
    bed.place('mine.yaml.sig', '{}');
    bed.said();
    assert.equal(await bed.remove(['web', 'pod/cam']), exitCodes.done);
    assert.equal(bed.said(), 'pod "web" deleted\npod "cam" deleted\n');
    assert.deepEqual(bed.names(), ['kitchen.app.configmap.yaml']);
    assert.equal(await bed.remove(['cm/app'], [], 'kitchen'), exitCodes.done);
    assert.deepEqual(bed.names(), []);
  }));

test('delete names a file that holds more, and removes nothing', () =>
  withFolder(async (bed) => {
    bed.place('both.yaml', `${pod('web')}---\n${pod('cam')}`);
    bed.place('one.yaml', pod('one'));
    bed.place('broken.yaml', `${pod('half')}---\n: : {\n`);
    await assert.rejects(
      bed.remove(['one', 'web']),
      ends(exitCodes.failed, /both\.yaml holds pod "web" and Pod\/default\/cam: take it out there/),
    );
    await assert.rejects(bed.remove(['half']), ends(exitCodes.failed, /broken\.yaml holds pod "half" and/));
    assert.deepEqual(bed.names(), ['both.yaml', 'broken.yaml', 'one.yaml']);
    assert.equal(await bed.remove(['web', 'cam']), exitCodes.done, 'all of it may go together');
    assert.deepEqual(bed.names(), ['broken.yaml', 'one.yaml']);
  }));

test('delete also takes what is there and wrong, and says what is not there', () =>
  withFolder(async (bed) => {
    bed.place('bad.yaml', pod('bad').replace('image', 'imagge'));
    assert.equal(await bed.remove(['bad']), exitCodes.done);
    bed.place('web.yaml', pod('web'));
    await assert.rejects(
      bed.remove(['wep']),
      ends(exitCodes.notFound, /no manifest in .* has pod "wep" in namespace "default"; did you mean Pod\/default\/web/),
    );
    await assert.rejects(bed.remove([]), ends(exitCodes.usage, /which one/));
    await assert.rejects(bed.remove(['web'], ['x.yaml']), ends(exitCodes.usage, /which one/));
    assert.equal(await bed.remove([], [bed.file(pod('web'))]), exitCodes.done);
    assert.deepEqual(bed.names(), []);
  }));

test('diff compares with whichever file holds the object', () =>
  withFolder(async (bed) => {
    bed.place('mine.yaml', pod('web'));
    assert.equal(await bed.diff(bed.file(pod('web'))), exitCodes.done);
    assert.equal(await bed.diff(bed.file(pod('web', 'app:2'))), exitCodes.failed);
    assert.match(bed.said(), /^-.*app:1[\s\S]*^\+.*app:2/m);
    assert.equal(await bed.diff(bed.file(pod('new'))), exitCodes.failed);
    assert.match(bed.said(), /^--- Pod\/default\/new \(the folder\)$[\s\S]*^\+kind: Pod$/m);
    await bed.apply(bed.file(secret('hunter2')));
    bed.said();
    assert.equal(await bed.diff(bed.file(secret('hunter3'))), exitCodes.failed);
    assert.ok(!bed.said().includes('hunter'));
  }));

test('a folder that cannot be read is no empty one', () =>
  withFolder(async (bed) => {
    rmSync(bed.manifests, { recursive: true });
    await assert.rejects(bed.remove(['web']), ends(exitCodes.failed, /cannot be read: there is no such folder/));
    await assert.rejects(bed.apply(bed.file(pod('web'))), ends(exitCodes.failed, /cannot be read/));
  }));
