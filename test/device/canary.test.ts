/**
 * Where a Secret's values are, and where they must never be: its containers, its manifest and the checkpoint's entry of it; never what is
 * told on any topic, logged, answered, written to a file beside, or passed on a command line. Looked for as it is, quoted, and in base64 at
 * every place a base64 text can begin.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import { type Lab, startLab } from './lab.ts';
import { container, type Fields, manifest, pod, serve } from './manifest.ts';
import { sleep, until } from './process.ts';
import { eventsOf, statusOf } from './story.ts';
import { gone, toldPod } from './truth.ts';
import { type Watcher, watchTopics } from './watcher.ts';

const canaries: string[] = [];
/** A value that stands nowhere else. */
const canary = (): string => {
  const value = `canary ${randomBytes(12).toString('hex')}`;
  canaries.push(value);
  return value;
};

/** What a value looks like within a longer text in base64, wherever it begins. */
const inBase64 = (value: string): string[] =>
  [0, 1, 2].map((shift) => {
    const whole = Buffer.from('x'.repeat(shift) + value).toString('base64');
    return whole.slice(shift === 0 ? 0 : 4, -4);
  });
/** The word, for a value may be quoted or cut at its blank. */
const looks = (): string[] => canaries.flatMap((value) => [value.split(' ')[1] ?? value, ...inBase64(value)]);
const within = (text: string): string | undefined => looks().find((look) => text.includes(look));
const around = (text: string, look: string): string => text.slice(Math.max(0, text.indexOf(look) - 200), text.indexOf(look) + 100);

function assertNone(what: string, text: string): void {
  const look = within(text);
  assert.equal(look, undefined, `${what} has it: ${look === undefined ? '' : around(text, look)}`);
}

let lab: Lab;
let everything: Watcher;
/** Command lines that had it. */
const argv = new Set<string>();
let over = false;
let looking: Promise<void>;
before(async () => {
  lab = await startLab('canary', { started: false });
  everything = await watchTopics(lab.broker.url, '#');
  looking = (async () => {
    while (!over) {
      for (const line of commandLines()) if (within(line) !== undefined) argv.add(line);
      await sleep(20);
    }
  })();
  lab.agent.start();
  await answers();
});
after(async () => {
  over = true;
  await looking;
  await everything?.end();
  await lab?.stop();
});

const answers = (): Promise<void> =>
  until('the agent answers', 60_000, async () => (await lab.agent.get('/pods').catch(() => undefined))?.status === 200);

function commandLines(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8')];
      } catch {
        return []; // it has ended
      }
    });
}

const tmpfs = (): Set<string> =>
  new Set(
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(' - tmpfs '))
      .map((line) => line.split(' ')[4] ?? ''),
  );

/** The mounts of the agent's pods that are memory. */
const inMemory = (): string[] => [...tmpfs()].filter((point) => point.startsWith(lab.agent.stateDir));

/** Files below a folder that hold it; what is mounted from memory is left out, as is the folder `except`, and links are not followed. */
function filesWith(folder: string, except?: string): string[] {
  const memory = tmpfs();
  const found: string[] = [];
  const visit = (at: string): void => {
    for (const entry of readdirSync(at, { withFileTypes: true })) {
      const path = join(at, entry.name);
      try {
        if (path === except || memory.has(path)) continue;
        if (entry.isDirectory()) visit(path);
        else if (entry.isSymbolicLink()) {
          if (within(readlinkSync(path)) !== undefined) found.push(path);
        } else if (entry.isFile() && within(readFileSync(path, 'latin1')) !== undefined) found.push(path);
      } catch (e) {
        if ((e as { code?: string }).code !== 'ENOENT') throw e; // it went meanwhile
      }
    }
  };
  visit(folder);
  return found;
}

/** Everywhere but the manifest; `stored`: the checkpoint has the Secrets. */
async function look(when: string, stored: boolean): Promise<void> {
  const { agent } = lab;
  for (const { topic, text } of everything.heard) assertNone(`${when}: ${topic}`, text);
  assertNone(`${when}: the agent's log`, agent.log());
  for (const path of ['/pods', '/sync', '/files', '/events', '/objects', '/conditions', '/configz', '/images'])
    assertNone(`${when}: ${path}`, (await agent.get(path)).body);
  assert.deepEqual([...argv], [], `${when}: command lines`);
  const isEntry = (f: string): boolean => f.startsWith(agent.stateDir) && /objects.+Secret.+(canary|docker)/.test(f);
  // the checkpoint and the volumes of what was removed go after it is told gone
  await until(`${when}: the checkpoint to be so`, 45_000, () => filesWith(agent.stateDir).some(isEntry) === stored, 200).catch(() => {});
  if (!stored) await until(`${when}: nothing in memory`, 45_000, () => inMemory().length === 0).catch(() => {});
  // stateDir, runDir and podLogsDir lie in it, and whatever else the agent leaves beside them
  const files = filesWith(agent.dir, agent.manifests);
  const entries = files.filter(isEntry);
  if (!stored) assert.deepEqual(inMemory(), [], when);
  assert.deepEqual(
    files.filter((f) => !entries.includes(f)),
    [],
    `${when}: files`,
  );
  assert.equal(entries.length > 0, stored, `${when}: the checkpoint has ${entries.join() || 'none of it'}`);
  for (const file of entries) assert.equal(statSync(file).mode & 0o777, 0o600, file);
}

const secret = (name: string, o: Fields): string => JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, ...o });
const env = (name: string, key: string): Fields => ({ name, valueFrom: { secretKeyRef: { name: 'canary', key } } });
const runs = (p: ToldPod, name: string): boolean => statusOf(p, name)?.state.running !== undefined;
const asked = { annotations: { 'podsched.dev/restart-on-change': 'true' } };

/** The pod, once it is told so. */
async function told(name: string, check: (p: ToldPod) => boolean): Promise<ToldPod> {
  let seen: ToldPod | undefined;
  await until(`${name} is told so`, 90_000, () => {
    seen = toldPod(lab, name);
    return seen !== undefined && check(seen);
  });
  assert.ok(seen);
  return seen;
}

/** What a script says in a running container. */
async function sh(name: string, of: string, script: string): Promise<string> {
  const found = (await lab.bed.cri.containers()).find(
    (c) => c.state === 'running' && c.name === of && c.labels['io.kubernetes.pod.name'] === name,
  );
  return (await lab.bed.cri.exec(found?.id ?? 'none', 'sh', '-c', script)).stdout.trim();
}

test('a Secret in environments: containers that run, fail, are probed, edited, changed and removed tell nobody', async () => {
  const [first, second, bytes] = [canary(), canary(), canary()];
  const write = (value: string): void =>
    lab.agent.drop(
      'secret.yaml',
      secret('canary', { stringData: { pw: value }, data: { more: Buffer.from(bytes).toString('base64'), pw: 'b2xk' } }),
    );
  const repeat = { exec: { command: ['sh', '-c', 'echo "cannot log in with $PW and $more"; exit 1'] } };
  const says = (more: Fields = {}): string =>
    manifest(
      pod(
        'says',
        {
          containers: [
            container('app', serve, {
              env: [env('PW', 'pw')],
              envFrom: [{ secretRef: { name: 'canary' } }],
              readinessProbe: { ...repeat, periodSeconds: 1 },
              lifecycle: { preStop: repeat },
              ...more,
            }),
            container('bad', ['$(PW)', '$(more)'], { env: [env('PW', 'pw'), env('more', 'more')] }),
            container('hooked', serve, { env: [env('PW', 'pw'), env('more', 'more')], lifecycle: { postStart: repeat } }),
          ],
        },
        asked,
      ),
    );
  // the pod comes first: it waits
  lab.agent.drop('says.yaml', says());
  await until('the pod waits', 60_000, async () =>
    (await eventsOf(lab.agent, 'says')).some((e) => e.includes('secret "canary" not found')),
  );
  write(first);
  await told('says', (p) => runs(p, 'app'));
  assert.equal(await sh('says', 'app', 'echo "$PW|$pw|$more"'), `${first}|${first}|${bytes}`);
  const events = (): Promise<string[]> => eventsOf(lab.agent, 'says');
  const isTold = (word: RegExp): Promise<void> => until(`${word}`, 60_000, async () => (await events()).some((e) => word.test(e)));
  await isTold(/^SecretInEnv: .*Secret canary/);
  await isTold(/^Unhealthy: Readiness probe failed: cannot log in with …/);
  await isTold(/^Failed: Error: .*…/);
  await isTold(/^FailedPostStartHook: /);
  await look('it runs', true);

  lab.agent.drop('says.yaml', says({ args: ['edited'] }));
  await isTold(/^FailedPreStopHook: /);
  await told('says', (p) => runs(p, 'app') && statusOf(p, 'app')?.restartCount === 1);
  write(second);
  await told('says', (p) => runs(p, 'app') && (statusOf(p, 'app')?.restartCount ?? 0) >= 2);
  assert.equal(await sh('says', 'app', 'echo "$PW"'), second);
  await isTold(/Container app: a ConfigMap or Secret it uses changed, will be restarted/);
  await look('it was changed', true);

  await lab.agent.kill9();
  lab.agent.start();
  await answers();
  await told('says', (p) => runs(p, 'app'));
  assert.equal((await events()).filter((e) => e.startsWith('SecretInEnv')).length, 1);
  await look('the agent was killed', true);

  lab.agent.removeManifest('says.yaml');
  lab.agent.removeManifest('secret.yaml');
  await gone(lab, 'says');
  await until('the Secret is gone', 45_000, async () => !(await lab.agent.get('/sync')).body.includes('"canary"'));
  await look('all was removed', false);
});

test('a Secret in volumes and for pulls: in memory, in the container, and nowhere else', async () => {
  const [first, second, password] = [canary(), canary(), canary()];
  const write = (value: string): void => lab.agent.drop('secret.yaml', secret('canary', { stringData: { pw: value, other: value } }));
  const auths = { 'registry.example': { username: 'u', password, auth: Buffer.from(`u:${password}`).toString('base64') } };
  lab.agent.drop(
    'docker.yaml',
    secret('docker', { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': JSON.stringify({ auths }) } }),
  );
  const mounts = [
    { name: 'whole', mountPath: '/whole' },
    { name: 'whole', mountPath: '/sub', subPath: 'pw' },
    { name: 'item', mountPath: '/item' },
    { name: 'all', mountPath: '/all' },
  ];
  const repeat = { exec: { command: ['sh', '-c', 'echo "cannot log in with $(cat /whole/pw)"; exit 1'] } };
  const text = manifest(
    pod('shows', {
      imagePullSecrets: [{ name: 'docker' }],
      volumes: [
        { name: 'whole', secret: { secretName: 'canary', defaultMode: 0o400 } },
        { name: 'item', secret: { secretName: 'canary', items: [{ key: 'pw', path: 'deep/p' }] } },
        { name: 'all', projected: { sources: [{ secret: { name: 'canary' } }] } },
      ],
      containers: [
        container('app', serve, { volumeMounts: mounts, readinessProbe: { ...repeat, periodSeconds: 1 }, lifecycle: { preStop: repeat } }),
        container('pulls', serve, { image: 'registry.example/nothing:1' }),
      ],
    }),
  );
  lab.agent.drop('shows.yaml', text);
  write(first);
  const seen = await told('shows', (p) => runs(p, 'app'));
  const shown = 'for f in /whole/pw /sub /item/deep/p /all/other; do cat $f; echo; done';
  assert.equal(await sh('shows', 'app', shown), [first, first, first, first].join('\n'));
  const volumes = join(lab.agent.stateDir, 'pods', seen.metadata.uid ?? '', 'volumes');
  assert.ok(
    [...tmpfs()].some((point) => point.startsWith(volumes)),
    'Secrets are in memory',
  );
  const isTold = (word: RegExp): Promise<void> =>
    until(`${word}`, 60_000, async () => (await eventsOf(lab.agent, 'shows')).some((e) => word.test(e)));
  await isTold(/^Unhealthy: Readiness probe failed: cannot log in with …/);
  await isTold(/registry\.example\/nothing:1/);
  await look('it runs', true);

  write(second);
  // one volume after the other; what a subPath shows is what it was when the container began
  const followed = [second, first, second, second].join('\n');
  await until('the files follow', 45_000, async () => (await sh('shows', 'app', shown)) === followed).catch(async () =>
    assert.equal(await sh('shows', 'app', shown), followed),
  );
  await look('it was changed', true);

  lab.agent.removeManifest('secret.yaml');
  await sleep(2000);
  assert.equal(await sh('shows', 'app', 'cat /whole/pw'), second);
  lab.agent.removeManifest('shows.yaml');
  lab.agent.removeManifest('docker.yaml');
  await gone(lab, 'shows');
  await until('the Secrets are gone', 45_000, async () => !/"(canary|docker)"/.test((await lab.agent.get('/sync')).body));
  await look('all was removed', false);
});
