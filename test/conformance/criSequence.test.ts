/**
 * What we call on the runtime, and in which order, equals what kubelet 1.32 called for the same manifest: start, then removal of the manifest.
 * Left out: removal calls (garbage collection, on its own time), the edit phase (behaviour "What an edit does"), probes, and how often a dead
 * sandbox is stopped again.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Pod } from '../../src/api/v1.ts';
import type { ProcessBehaviour } from '../fakes/runtimeRecords.ts';
import { House } from '../kuberuntime/house.ts';

const folder = new URL('kubelet-1.32/', import.meta.url);
type Entry = [
  phase: string,
  call: string,
  details: { container?: string; attempt?: number; timeout?: number; ok?: boolean },
  repeats: number,
];

/** What the commands of the manifests end with; containers not named here run until they are stopped. */
const ends: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  '021': { first: 0, second: 0 },
  '022': { setup: 0 },
  '023': { c: 0 },
  '024': { a: 3, b: 0 },
  '025': { ok: 0 },
  '026': { c: 7 },
  '044': { i: 5 },
};
/** How many starts the recording of the crash loop lasted. */
const starts: Readonly<Record<string, number>> = { '026': 5 };

/** The commands of the manifests' hooks. */
const hookResult = (command: readonly string[]): { exitCode?: number; takesMs?: number } =>
  command.includes('/bin/false') ? { exitCode: 1 } : command.includes('sleep 1') ? { takesMs: 1000 } : {};
/** A probe has a time-out of its own, a hook has none. */
const isHook = (d: Entry[2]): boolean => d.timeout === 0;

/** One word per call; stops of containers that run beside each other in the order of their names. */
function words(calls: readonly { call: string; container?: string | undefined; number?: number | undefined }[]): string[] {
  const all = calls.map(({ call, container, number }) => [call, container, number].filter((w) => w !== undefined).join(' '));
  const once = all.filter((w, i) => w !== 'StopPodSandbox' || all[i - 1] !== w);
  const firstStop = once.findIndex((w) => w.startsWith('StopContainer'));
  if (firstStop < 0) return once;
  const after = once.findIndex((w, i) => i > firstStop && !w.startsWith('StopContainer'));
  return [...once.slice(0, firstStop), ...once.slice(firstStop, after).sort(), ...once.slice(after)];
}

for (const file of readdirSync(new URL('recorded/', folder)).sort()) {
  const recording = JSON.parse(readFileSync(new URL(`recorded/${file}`, folder), 'utf8')) as {
    manifest: string;
    sequence: Entry[];
    containers: object;
  };
  if (Object.keys(recording.containers).length === 0) continue; // images: test/images; a user who is refused: test/kuberuntime
  const number = file.slice(0, 3);
  const text = readFileSync(new URL(`manifests/${recording.manifest}`, folder), 'utf8');
  // what a probe or a runtime that refuses does is not simulated here: test/device/conformance.test.ts
  if (/livenessProbe:/.test(text) || recording.sequence.some(([, , d]) => d.ok === false)) continue;

  test(`${recording.manifest}: the runtime is called as the kubelet calls it`, async () => {
    const manifest = parse(text) as Pod;
    const desired = toDesiredPod(manifest, { uid: 'u' as PodUid, source: 'file:x.yaml', nodeName: 'pi', firstSeen: '' });
    const house = new House();
    house.runtime.onStart((name): ProcessBehaviour => {
      const exitCode = ends[number]?.[name];
      return { exec: hookResult, ...(exitCode !== undefined && { exitAfterMs: 10, exitCode }) };
    });
    for (let idle = 0, limit = 0; idle < 3 && limit < 60; limit++) {
      const { acted, nextWaitMs } = await house.sync(desired);
      for (const c of house.runtime.containers.values()) house.probes.set(c.id, { startup: 'success' });
      const begun = house.runtime.calls.filter((c) => c.method === 'startContainer').length;
      if (begun === starts[number]) break;
      idle = acted || nextWaitMs !== undefined ? 0 : idle + 1;
      await house.clock.advance(nextWaitMs ?? 20);
      // a finished pod is put away once and not looked at again
      if (acted && [...house.runtime.sandboxes.values()].every((s) => s.state === 'notready')) break;
    }
    await house.clock.advance(20);
    await house.drive(house.kube.killPod(desired, await house.inspect(desired), undefined));

    const ours = house.runtime.calls.flatMap(({ method, args }) => {
      const config = args[1] as { name: string; attempt: number };
      const record = house.runtime.containers.get(args[0] as never);
      switch (method) {
        case 'runSandbox':
          return [{ call: 'RunPodSandbox', number: (args[0] as { attempt: number }).attempt }];
        case 'createContainer':
          return [{ call: 'CreateContainer', container: config.name, number: config.attempt }];
        case 'startContainer':
          return [{ call: 'StartContainer', container: record?.config.name }];
        case 'stopContainer':
          return [{ call: 'StopContainer', container: record?.config.name, number: args[1] as number }];
        case 'execSync':
          return [{ call: 'ExecSync', container: record?.config.name, number: args[2] as number }];
        case 'stopSandbox':
          return [{ call: 'StopPodSandbox' }];
        default:
          return [];
      }
    });
    const theirs = recording.sequence
      .filter(([phase, call, d]) => phase !== 'edit' && !call.startsWith('Remove') && (call !== 'ExecSync' || isHook(d)))
      .map(([, call, d]) => ({ call, container: d.container, number: d.attempt ?? d.timeout }));
    assert.deepEqual(words(ours), words(theirs));
    assert.deepEqual(house.runtime.violations, []);
  });
}
