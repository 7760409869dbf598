// pure
/**
 * Calls as sentences that can be compared: the order within a pod, without intervals. Containers that are stopped beside one another are
 * sorted (sidecars are not: they end one after the other), what is said again at once is said once, commands that ran in containers are a
 * set, and removals are judged by what was created.
 */

import type { Case, RecordedEntry } from './conformanceRecordings.ts';
import type { RecordedCall } from './criRecorder.ts';

export interface Sequence {
  start: string[];
  /** Empty for a manifest that is not edited: what goes on meanwhile belongs to its start. */
  edit: string[];
  delete: string[];
  /** `<container> <command as JSON> <limit in seconds>` */
  exec: string[];
}

/** What the recordings' second phase did to which manifest: a container of it, or nothing that reaches a container. */
export const edits: Readonly<Record<string, { readonly from: string; readonly to: string; readonly containers: readonly string[] }>> = {
  '001-minimal': { from: '"100000"', to: '"100001"', containers: ['c'] },
  '005-qos-burstable-two': {
    from: 'limits: {memory: 48Mi}}}',
    to: 'limits: {memory: 48Mi}}, env: [{name: EDITED, value: "1"}]}',
    containers: ['b'],
  },
  '040-labels-annotations': { from: 'tier: "1"', to: 'tier: "2"', containers: [] },
};

interface Step {
  readonly phase: string;
  readonly call: string;
  readonly container?: string | undefined;
  readonly attempt?: number | undefined;
  readonly timeout?: number | undefined;
  readonly cmd?: readonly string[] | undefined;
  readonly ok?: boolean | undefined;
}

const word = (s: Step): string =>
  [s.call, s.container, s.attempt ?? s.timeout, s.ok === false ? 'failed' : undefined].filter((w) => w !== undefined).join(' ');

/** Stops that follow one another: those of plain containers by name, up to a sidecar's, which keeps its place. */
function sortStops(steps: readonly string[], sidecars: ReadonlySet<string>): string[] {
  const out: string[] = [];
  let run: string[] = [];
  for (const step of steps) {
    const [call, container = ''] = step.split(' ');
    if (call === 'StopContainer' && !sidecars.has(container)) {
      run.push(step);
      continue;
    }
    out.push(...run.sort(), step);
    run = [];
  }
  return [...out, ...run.sort()];
}

const once = (steps: readonly string[]): string[] => steps.filter((s, i) => s !== steps[i - 1]);
/** Removal calls come from garbage collection, whose rounds may meet: a stop that finds no sandbox any more, after one that did, is no difference. */
const withoutLateStops = (steps: readonly string[]): string[] =>
  steps.filter((s, i) => s !== 'StopPodSandbox failed' || !steps.slice(0, i).includes('StopPodSandbox'));

function sequence(steps: readonly Step[], of: Case): Sequence {
  const sidecars = new Set((of.pod.spec.initContainers ?? []).filter((c) => c.restartPolicy === 'Always').map((c) => c.name));
  const edited = of.name in edits;
  const of1 = (phases: readonly string[]) =>
    sortStops(
      withoutLateStops(
        once(steps.filter((s) => phases.includes(s.phase) && s.call !== 'ExecSync' && !s.call.startsWith('Remove')).map(word)),
      ),
      sidecars,
    );
  const exec = steps.filter((s) => s.call === 'ExecSync').map((s) => `${s.container} ${JSON.stringify(s.cmd)} ${s.timeout}`);
  return {
    start: of1(edited ? ['start'] : ['start', 'edit']),
    edit: edited ? of1(['edit']) : [],
    delete: of1(['delete']),
    exec: [...new Set(exec)].sort(),
  };
}

export const ourSequence = (calls: readonly RecordedCall[], of: Case): Sequence => sequence(calls, of);

export const recordedSequence = (entries: readonly RecordedEntry[], of: Case): Sequence =>
  sequence(
    entries.map(([phase, call, details]) => ({ phase, call, ...details })),
    of,
  );

/** What was created and never removed. */
export function notRemoved(calls: readonly RecordedCall[]): string[] {
  const left: string[] = [];
  const balance = (made: string, removed: string, of: string, fits: (c: RecordedCall) => boolean) => {
    const count = (call: string) => calls.filter((c) => c.call === call && c.ok === true && fits(c)).length;
    if (count(made) > count(removed)) left.push(`${count(made) - count(removed)} of ${count(made)} ${of} not removed`);
  };
  balance('RunPodSandbox', 'RemovePodSandbox', 'sandboxes', () => true);
  for (const name of new Set(calls.filter((c) => c.call === 'CreateContainer').map((c) => c.container)))
    balance('CreateContainer', 'RemoveContainer', `containers ${name}`, (c) => c.container === name);
  return left;
}
