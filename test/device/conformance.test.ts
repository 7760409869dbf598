/**
 * The manifests that a real kubelet 1.32 was recorded with, all at once on a private containerd behind a recording proxy: what the agent asks
 * for, in which order, what the pods then are by the local API, and what is said of them, field by field. What may differ is named in
 * conformanceAllowed.ts; anything else is a fault. CONFORMANCE_REPORT names a file for all differences, grouped by where they are.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { rules } from './conformanceAllowed.ts';
import { inside, items, type Place } from './conformanceNormal.ts';
import { type Case, type Fields, readCases } from './conformanceRecordings.ts';
import { edits, notRemoved } from './conformanceSequence.ts';
import { judge, keyOf, needed } from './conformanceSides.ts';
import { type CriRecorder, startCriRecorder } from './criRecorder.ts';
import { sleep } from './process.ts';

const cases = readCases();
/** What the recordings call `<tmp>`: the manifests name it. */
const tmp = '/var/tmp/podsched-conformance';
const hostDns = '192.0.2.99';
const nodeName = 'conformance-node';

/** Refused as a whole, at this path, and why that is right. */
const refused: Readonly<Record<string, { readonly path: RegExp; readonly why: string }>> = {
  '046-norway-env-name': { path: /^spec\.containers\[0\]\.env\[0\]\.name$/, why: 'the kubelet refuses it too: N is a boolean' },
};
const compared = cases.filter((c) => !(c.name in refused));

let bed: Bed;
let recorder: CriRecorder;
let agent: Agent;
let place: Place;
/** The pod as it was first seen equal to the recording, else as it was last seen before anything was edited. */
const shown = new Map<string, Fields>();
const reached = new Set<string>();
/** All of their start was seen. */
const complete = new Set<string>();
const remaining = new Map<string, string[]>();
/** Rules that were needed. */
const fired = new Set<string>();
const timings: string[] = [];

const eventName = (e: Fields): string => String(inside(e.metadata).name);

async function list(path: string): Promise<Fields[]> {
  const { body } = await agent.get(path);
  return [...items((JSON.parse(body) as Fields).items)];
}
async function pods(): Promise<Map<string, Fields>> {
  return new Map((await list('/pods')).map((pod) => [keyOf(pod.metadata), pod]));
}

const judged = (of: Case, pod: Fields | undefined, events: readonly Fields[] = [], ending: ReadonlySet<Fields> = new Set()): string[] =>
  judge(of, { pod, events, ending, recorder }, place);

const ofPod = /^(metadata|spec|status)\b/;
const later = /^(events|order|sequence\.(edit|delete))\b/;

/** Looks every half second until `check` is content; false after `timeoutMs`. */
async function settled(what: string, timeoutMs: number, check: () => Promise<boolean>): Promise<boolean> {
  const start = performance.now();
  let good = await check();
  while (!good && performance.now() - start < timeoutMs) {
    await sleep(500);
    good = await check();
  }
  timings.push(`${what}: ${good ? '' : 'NOT in '}${((performance.now() - start) / 1000).toFixed(1)} s`);
  return good;
}

/** Until all that the recording has of the start is there. */
async function started(): Promise<boolean> {
  const told = await pods();
  for (const of of compared.filter((c) => !complete.has(c.key))) {
    const pod = told.get(of.key);
    const now = judged(of, pod);
    const equal = !now.some((d) => ofPod.test(d));
    if (pod !== undefined && !reached.has(of.key)) shown.set(of.key, pod);
    if (equal) reached.add(of.key);
    const hooked = of.pod.spec.containers.some((c) => c.lifecycle?.preStop !== undefined);
    const missing = now.filter((d) => !later.test(d) && !ofPod.test(d) && !(hooked && d.startsWith('sequence.exec')));
    if (missing.length === 0 && reached.has(of.key)) complete.add(of.key);
  }
  return complete.size === compared.length;
}

/** Until the edits have done what they do, and the changed label is told. */
async function edited(): Promise<boolean> {
  const label = inside((await pods()).get('default/labelled'), 'metadata', 'labels').tier;
  return label === '2' && compared.every((of) => !(of.name in edits) || !judged(of, undefined).some((d) => d.startsWith('sequence.edit')));
}

const secondsOf: Readonly<Record<string, number>> = { '10s': 10, '20s': 20, '40s': 40, '1m20s': 80, '2m40s': 160, '5m0s': 300 };

/** How long a container that crashes waits yet; 0: it does not wait. */
function restMs(status: Fields): number {
  const { reason, message } = inside(status, 'state', 'waiting');
  const wait = secondsOf[/^back-off (\S+) /.exec(String(message))?.[1] ?? ''];
  if (reason !== 'CrashLoopBackOff' || wait === undefined) return 0;
  return Date.parse(String(inside(status, 'lastState', 'terminated').finishedAt)) + wait * 1000 - Date.now();
}

/** Until what crashes again and again waits for its next start, and will for a while: then there is nothing to stop. */
async function waiting(): Promise<boolean> {
  const told = await pods();
  const crashes = (s: Fields) => inside(s, 'state', 'waiting').reason === 'CrashLoopBackOff';
  const loops = compared.filter((of) => items(of.recording?.status.containerStatuses).some(crashes));
  return loops.every((of) => items(inside(told.get(of.key), 'status').containerStatuses).every((s) => restMs(s) > 5_000));
}

const shortened = (line: string): string => (line.length > 600 ? `${line.slice(0, 600)}…` : line);

/** Differences of all manifests by where they are, most frequent first. */
function grouped(): string {
  const groups = new Map<string, string[]>();
  for (const [name, lines] of remaining) {
    for (const line of lines) {
      const at = line
        .slice(0, line.indexOf(': ours'))
        .replaceAll(/\[\d+\]/g, '[]')
        .replace(/^containers\.[^.]+/, 'containers.*')
        .replace(/^events\..*(Normal|Warning) (\w+): .*/, 'events $2');
      groups.set(at, [...(groups.get(at) ?? []), `    ${name} ${shortened(line)}`]);
    }
  }
  const sorted = [...groups].sort(([, a], [, b]) => b.length - a.length);
  return sorted.map(([at, lines]) => `${lines.length} × ${at}\n${lines.slice(0, 12).join('\n')}`).join('\n');
}

before(async () => {
  rmSync(tmp, { recursive: true, force: true });
  mkdirSync(tmp, { recursive: true });
  bed = await startBed({ name: 'conformance' });
  recorder = await startCriRecorder(join(bed.dir, 'recorder.sock'), bed.socket);
  const resolvConf = join(bed.dir, 'resolv.conf');
  writeFileSync(resolvConf, `nameserver ${hostDns}\n`);
  const own = process.env.CONFORMANCE_BUNDLE;
  agent = await startAgent(recorder, { nodeName, config: { resolvConf }, ...(own !== undefined && { env: { PODSCHED_BUNDLE: own } }) });
  const hugepageSizes = readdirSync('/sys/kernel/mm/hugepages').map((dir) => {
    const kB = Number(/^hugepages-(\d+)kB$/.exec(dir)?.[1]);
    return kB >= 2 ** 20 ? `${kB / 2 ** 20}GB` : kB >= 1024 ? `${kB / 1024}MB` : `${kB}KB`;
  });
  const thermalThrottlePaths = readdirSync('/sys/devices/system/cpu')
    .filter((dir) => /^cpu\d+$/.test(dir))
    .map((dir) => `/sys/devices/system/cpu/${dir}/thermal_throttle`)
    .filter((path) => existsSync(path));
  const machine = { memoryBytes: totalmem(), hugepageSizes, thermalThrottlePaths };
  const unified = existsSync('/sys/fs/cgroup/cgroup.controllers');
  place = { nodeName, root: agent.stateDir, tmp, podLogsDir: agent.podLogsDir, hostDns, unified, ...machine };
  await settled('the agent answers', 45_000, () =>
    agent.get('/pods').then(
      ({ status }) => status === 200,
      () => false,
    ),
  );

  recorder.phase = 'start';
  for (const { manifest, text: t } of cases) agent.drop(manifest, t);
  await settled('everything has started', 100_000, started);

  recorder.phase = 'edit';
  for (const of of cases) {
    const edit = edits[of.name];
    if (edit !== undefined) agent.drop(of.manifest, of.text.replace(edit.from, edit.to));
  }
  await settled('the edits are done', 30_000, edited);
  await settled('what crashes waits', 45_000, waiting);
  const refusals = await list('/files');
  const sync = new Map((await list('/sync')).map((s) => [keyOf(s.object), s]));
  for (const [name, { path }] of Object.entries(refused)) {
    const of = cases.find((c) => c.name === name);
    const file = refusals.find((f) => f.file === of?.manifest);
    const found = items(file?.problems).some((p) => path.test(String(p.path)));
    const touched = recorder.calls.some((c) => c.pod === of?.key);
    remaining.set(name, [
      ...(found ? [] : [`refusal: ours ${JSON.stringify(file?.problems)}, kubelet ${path}`]),
      ...(touched ? ['calls: ours some, kubelet none'] : []),
    ]);
  }

  const before = new Set((await list('/events')).map(eventName));
  recorder.phase = 'delete';
  for (const { manifest } of cases) agent.removeManifest(manifest);
  await settled('everything is gone', 60_000, async () => (await pods()).size === 0 && (await bed.cri.sandboxes()).length === 0);
  const events = await list('/events');
  const ending = new Set(events.filter((e) => !before.has(eventName(e))));
  for (const of of compared) {
    if (!shown.has(of.key)) {
      const { reason, message } = sync.get(of.key) ?? {};
      remaining.set(of.name, [`pod: ours not shown (${reason}: ${message}), kubelet shows it`]);
      continue;
    }
    const left = notRemoved(recorder.calls.filter((c) => c.pod === of.key));
    const lines = judged(of, shown.get(of.key), events, ending);
    for (const rule of rules)
      if (!fired.has(rule.name) && needed(rule, of, { pod: shown.get(of.key), events, ending, recorder }, place, lines.length))
        fired.add(rule.name);
    remaining.set(of.name, [...lines, ...left.map((l) => `removal: ours ${l}, kubelet none`)]);
  }
  if ([...remaining.values()].some((lines) => lines.length > 0)) console.log(grouped());
  const report = process.env.CONFORMANCE_REPORT;
  if (report !== undefined) {
    const bare = cases.filter((c) => remaining.get(c.name)?.length === 0).map((c) => c.name);
    mkdirSync(dirname(report), { recursive: true });
    writeFileSync(report, `${timings.join('\n')}\nequal (${bare.length}): ${bare.join(' ')}\n${grouped()}\n`);
    writeFileSync(`${report}.json`, JSON.stringify({ calls: recorder.calls, log: agent.log() }, undefined, 1));
  }
});

after(async () => {
  await agent?.remove();
  await recorder?.close();
  await bed?.stop();
  rmSync(tmp, { recursive: true, force: true });
});

for (const of of cases) {
  const claim = of.name in refused ? `is refused (${refused[of.name]?.why})` : 'is asked for, runs, ends and is told as by the kubelet';
  test(`${of.manifest} ${claim}`, () => {
    const lines = remaining.get(of.name);
    assert.ok(lines, 'it was compared');
    assert.equal(lines.map((line) => shortened(`${of.name} ${line}`)).join('\n'), '');
  });
}

test('every allowed difference is still needed', () => {
  const idle = rules.filter((rule) => rule.mayRest !== true && !fired.has(rule.name)).map((rule) => rule.name);
  assert.deepEqual(idle, []);
});

test('the whole life of all manifests passes in its time', () => {
  assert.deepEqual(
    timings.filter((t) => t.includes('NOT')),
    [],
  );
});
