import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../src/api/v1.ts';
import type { ContainerState, RuntimePodStatus, SandboxState } from '../../src/container/words.ts';
import { cutOff } from '../../src/pod/cutOff.ts';

const pod = (restartPolicy: 'Never' | 'OnFailure' | 'Always', ...names: string[]): Pod =>
  ({ spec: { restartPolicy, containers: names.map((name) => ({ name, image: 'i' })) } }) as unknown as Pod;

/** A record: `a exited`, `b running`, `a lost` (the runtime found it dead after a reboot). */
function status(sandbox: SandboxState | undefined, started: string | undefined, ...records: string[]): RuntimePodStatus {
  return {
    sandboxes:
      sandbox === undefined ? [] : [{ state: sandbox, annotations: started === undefined ? {} : { 'podsched.dev/started': started } }],
    containers: records.map((r) => {
      const [name, word] = r.split(' ');
      const state: ContainerState = word === 'lost' ? 'exited' : (word as ContainerState);
      return { name, state, reason: word === 'lost' ? 'Unknown' : 'Completed' };
    }),
  } as unknown as RuntimePodStatus;
}

const [now, before] = ['boot-1/5', 'boot-0/5'];
const table: readonly (readonly [what: string, Pod, RuntimePodStatus, reason: string | undefined])[] = [
  ['its sandbox lives', pod('Never', 'a'), status('ready', now, 'a running'), undefined],
  ['it has no sandbox yet', pod('Never', 'a'), status(undefined, undefined), undefined],
  ['nothing of it was created: it simply starts', pod('Never', 'a'), status('notready', before), undefined],
  ['all had an end of their own', pod('Never', 'a', 'b'), status('notready', now, 'a exited', 'b exited'), undefined],
  ['one still runs in the dead sandbox', pod('Never', 'a', 'b'), status('notready', now, 'a exited', 'b running'), undefined],
  ['one was cut off by a reboot', pod('Never', 'a', 'b'), status('notready', before, 'a exited', 'b lost'), 'NodeRebooted'],
  ['one never started before the reboot', pod('Never', 'a', 'b'), status('notready', before, 'a exited'), 'NodeRebooted'],
  ['only created before the reboot', pod('Never', 'a'), status('notready', before, 'a created'), 'NodeRebooted'],
  ['the sandbox died in this boot', pod('Never', 'a'), status('notready', now, 'a lost'), 'SandboxDied'],
  ['a sandbox that does not say when it began', pod('Never', 'a'), status('notready', undefined, 'a lost'), 'SandboxDied'],
  ['OnFailure runs again', pod('OnFailure', 'a'), status('notready', before, 'a lost'), undefined],
  ['Always runs again', pod('Always', 'a'), status('notready', before, 'a lost'), undefined],
];

for (const [what, p, runtime, reason] of table) {
  test(`${what}: ${reason ?? 'not cut off'}`, () => assert.equal(cutOff(p, runtime, 'boot-1')?.reason, reason));
}
