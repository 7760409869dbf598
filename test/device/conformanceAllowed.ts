// pure
/**
 * Where podsched may differ from the recorded kubelet, and why (the recordings' own list of allowed differences). Each rule changes as little
 * as it can on one side or on both; a rule without which a whole run has no difference more is no longer needed, and fails the test.
 */
import { differences, type Json } from '../conformance/kubelet-1.32/recording.ts';
import { inside, isFields, items } from './conformanceNormal.ts';
import type { Case, Fields } from './conformanceRecordings.ts';
import { edits, type Sequence } from './conformanceSequence.ts';

/** What one pod was, asked for and said. */
export interface Side {
  sandbox: Json;
  containers: { [name: string]: Json };
  sequence: Sequence;
  metadata: Fields;
  spec: Fields;
  status: Fields;
  /** `<field path> <type> <reason>: <message>` → true, in the order in which they first came: how often is not compared. */
  events: { [event: string]: Json };
}

export interface Both {
  readonly of: Case;
  readonly ours: Side;
  readonly theirs: Side;
  /** Events of ours that first came after the manifest had gone. */
  readonly ending: readonly string[];
  /** This machine has cgroup v2 and nothing else. */
  readonly unified: boolean;
}

export interface Rule {
  readonly name: string;
  readonly reason: string;
  /** Whether it is needed is a matter of the moment or of the machine: enough that there is something it is about. */
  readonly varies?: true;
  /** There may be nothing that it is about, here or today. */
  readonly mayRest?: true;
  apply(both: Both): void;
}

/** Every text of a side, names of fields and events included. */
function rewrite(side: Side, change: (text: string) => string): void {
  const walk = (value: Json): Json => {
    if (typeof value === 'string') return change(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [change(k), walk(v)]));
  };
  Object.assign(side, walk(side as unknown as Json));
}

const dropKeys = (fields: Fields, drop: (key: string) => boolean): void => {
  for (const key of Object.keys(fields).filter(drop)) delete fields[key];
};

/** Labels and annotations of everything a side has. */
const marks = (side: Side): Fields[] =>
  [side.sandbox, ...Object.values(side.containers), side.metadata].flatMap((o) => [inside(o, 'labels'), inside(o, 'annotations')]);

const replaceIn = (fields: Fields, key: string, value: Json): void => {
  if (key in fields) fields[key] = value;
};

const only = (fields: Fields, keep: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => keep.includes(key)));

/** Whether the container can be made is left out, and with it the rest of its life: what was asked for is compared. */
function onlyConfigs({ ours, theirs }: Both): void {
  for (const side of [ours, theirs]) {
    const { start, delete: end } = side.sequence;
    side.sequence = {
      start: start.slice(0, 2).map((step) => step.replace(/ failed$/, '')),
      edit: [],
      // it may be tried once more before the removal is noticed
      delete: end.filter((step) => step === 'StopPodSandbox').slice(0, 1),
      exec: [],
    };
    side.events = {};
    side.status = only(side.status, ['qosClass']);
  }
}

/** The kubelet asked for nothing: what is compared with is the plain life of containers that run until they are stopped. */
function plainLife({ of, ours, theirs }: Both): void {
  const { containers, terminationGracePeriodSeconds: grace = 30 } = of.pod.spec;
  const names = containers.map((c) => c.name);
  theirs.sequence = {
    start: ['RunPodSandbox 0', ...names.flatMap((name) => [`CreateContainer ${name} 0`, `StartContainer ${name}`])],
    edit: [],
    delete: [...names.map((name) => `StopContainer ${name} ${Math.max(2, grace)}`).sort(), 'StopPodSandbox'],
    exec: [],
  };
  if (!hasEvent(theirs, 'Started')) theirs.events = eventsOfCalls(theirs.sequence, of);
  theirs.status = { ...only(theirs.status, ['qosClass']), phase: 'Running' };
  ours.status = only(ours.status, ['qosClass', 'phase']);
  for (const side of [ours, theirs]) {
    side.sandbox = null;
    side.containers = {};
  }
}

const refusedForSpace = 'UnexpectedAdmissionError';
/** Refused so in one of the runs that were recorded, though there is nothing wrong with them. */
const forLackOfSpace = ['004-qos-guaranteed', '005-qos-burstable-two', '021-init-containers'];
const hasEvent = (side: Side, reason: string): boolean => Object.keys(side.events).some((e) => e.includes(` ${reason}: `));

/** The lives of plain containers in events, from the calls that were made for them. */
function eventsOfCalls(sequence: Sequence, of: Case): { [event: string]: Json } {
  const events: { [event: string]: Json } = {};
  const inits = new Map((of.pod.spec.initContainers ?? []).map((c) => [c.name, c]));
  for (const step of [...sequence.start, ...sequence.edit, ...sequence.delete]) {
    const [call, name = ''] = step.split(' ');
    const at = `spec.${inits.has(name) ? 'initContainers' : 'containers'}{${name}} Normal`;
    if (call === 'StartContainer') {
      const image = [...(of.pod.spec.initContainers ?? []), ...of.pod.spec.containers].find((c) => c.name === name)?.image;
      events[`${at} Pulled: Container image "${image}" already present on machine`] = true;
      events[`${at} Created: Created container: ${name}`] = true;
      events[`${at} Started: Started container ${name}`] = true;
    }
    if (call === 'StopContainer') events[`${at} Killing: Stopping container ${name}`] = true;
  }
  return events;
}

const creates = (steps: readonly string[]): number => steps.filter((s) => s.startsWith('CreateContainer')).length;

/** How many rounds of a crash loop are enough to see its order. */
export const enoughRounds = 3;

/** In the order in which they are applied. */
export const rules: readonly Rule[] = [
  {
    name: 'names without the node',
    reason: 'a pod has the name its manifest gives it; the topic names the node (names, hostname, log folder, values of the downward API)',
    apply: ({ theirs }) => rewrite(theirs, (text) => text.replaceAll(/-(<node>|pi-lab)/g, '').replaceAll('pi-lab', '<node>')),
  },
  {
    name: 'own labels and annotations',
    reason: 'podsched.dev/* say which agent it is of, from which file, and what it was made of',
    apply: ({ ours }) => {
      for (const fields of marks(ours)) dropKeys(fields, (key) => key.startsWith('podsched.dev/'));
    },
  },
  {
    name: 'own revision',
    reason: 'kubernetes.io/config.hash is kept for tools; its value is the revision, and no UID is made of it',
    apply: (both) => {
      for (const side of [both.ours, both.theirs])
        for (const fields of marks(side)) replaceIn(fields, 'kubernetes.io/config.hash', '<hash>');
    },
  },
  {
    name: 'own container hash',
    reason: 'hashes of a scheme of our own, which survives upgrades',
    apply: (both) => {
      for (const side of [both.ours, both.theirs])
        for (const fields of marks(side)) replaceIn(fields, 'io.kubernetes.container.hash', '<hash>');
    },
  },
  {
    name: 'own resolv.conf',
    reason: "it is a file of the agent, mounted like /etc/hosts, and rewritten in place when the host's changes",
    apply: ({ ours }) => {
      for (const config of Object.values(ours.containers)) {
        const own = (mount: Json) =>
          inside(mount).container_path === '/etc/resolv.conf' && String(inside(mount).host_path).startsWith('<root>/');
        if (isFields(config) && Array.isArray(config.mounts)) config.mounts = config.mounts.filter((mount) => !own(mount));
      }
    },
  },
  {
    name: 'no service variables',
    reason: 'KUBERNETES_SERVICE_* came from the fork that was recorded; there is no API server to point to',
    apply: ({ theirs }) => {
      for (const config of Object.values(theirs.containers)) {
        if (!isFields(config) || !Array.isArray(config.envs)) continue;
        const envs = config.envs.filter((e) => !/^KUBERNETES_SERVICE_(HOST|PORT)$/.test(String(inside(e).key)));
        if (envs.length > 0) config.envs = envs;
        else delete config.envs;
      }
    },
  },
  {
    name: 'host addresses in status',
    reason:
      "a kubelet without an API server leaves hostIP and hostIPs empty; so a host-network pod, whose addresses are the machine's, has none there either",
    apply: ({ of, ours: { status } }) => {
      const same = status.podIP === status.hostIP && differences(status.podIPs, status.hostIPs).length === 0;
      const host = of.pod.spec.hostNetwork === true && same ? ['podIP', 'podIPs'] : [];
      dropKeys(status, (key) => ['hostIP', 'hostIPs', ...host].includes(key));
    },
  },
  {
    name: 'no MissingClusterDNS',
    reason: 'ClusterFirst without a cluster DNS is simply Default',
    apply: ({ theirs }) => dropKeys(theirs.events, (event) => event.includes(' Warning MissingClusterDNS: ')),
  },
  {
    name: '001, 005, 040: edits touch little',
    reason: 'an edit restarts the container it changes with the next attempt number, in its sandbox, and a label restarts nothing',
    apply: ({ of, ours, theirs }) => {
      const edit = edits[of.name];
      if (edit === undefined) return;
      for (const name of edit.containers)
        delete ours.events[`spec.containers{${name}} Normal Killing: Container ${name} definition changed, will be restarted`];
      theirs.sequence.edit = theirs.sequence.edit
        .filter((step) => edit.containers.includes(step.split(' ')[1] ?? ''))
        .map((step) => step.replace(/^(CreateContainer \S+) 0$/, '$1 1'));
    },
  },
  {
    name: 'length of a crash loop',
    reason:
      'how many rounds there are is a matter of how long one looks: order and kind are compared, not the count and the wait it has reached',
    varies: true,
    apply: ({ of, ours, theirs }) => {
      if (of.name !== '026-crashloop' && of.name !== '045-liveness-kills') return;
      if (creates(ours.sequence.start) >= enoughRounds) {
        const length = Math.min(ours.sequence.start.length, theirs.sequence.start.length);
        for (const side of [ours, theirs]) side.sequence.start = side.sequence.start.slice(0, length);
      }
      for (const side of [ours, theirs]) {
        for (const status of items(side.status.containerStatuses)) {
          if (Number(status.restartCount) >= enoughRounds - 1) status.restartCount = '<rounds>';
          const waiting = inside(status, 'state', 'waiting');
          if (typeof waiting.message === 'string')
            waiting.message = waiting.message.replace(/^back-off (10s|20s|40s|1m20s|2m40s) /, 'back-off <wait> ');
        }
      }
    },
  },
  {
    name: 'what a preStop hook leaves of the grace',
    reason: 'it depends on how long the hook took, in whole seconds',
    varies: true,
    apply: ({ of, ours, theirs }) => {
      const grace = of.pod.spec.terminationGracePeriodSeconds ?? 30;
      const hooked = of.pod.spec.containers.filter((c) => c.lifecycle?.preStop !== undefined).map((c) => c.name);
      for (const { sequence } of [ours, theirs]) {
        sequence.delete = sequence.delete.map((step) => {
          const [call, name = '', left] = step.split(' ');
          const less = call === 'StopContainer' && hooked.includes(name) && Number(left) >= 2 && Number(left) < grace;
          return less ? `${call} ${name} <rest>` : step;
        });
      }
    },
  },
  {
    name: 'an event of our own',
    reason:
      'who is killed by a liveness probe before it ever answered is told that a startup probe gives it time; the kubelet leaves that out',
    apply: ({ ours }) => {
      const words =
        /^spec\.containers\{(\S+)\} Warning ProbeHint: container \1 failed its liveness probe before it ever succeeded: if it only starts slowly, /;
      dropKeys(ours.events, (event) => words.test(event));
    },
  },
  {
    name: 'a busy machine',
    reason: 'a probe that had no time for its answer, or came before its server listened, is told so and asked again, later if it goes on',
    varies: true,
    mayRest: true,
    apply: ({ ours, theirs }) => {
      const words =
        / Warning Unhealthy: (Startup probe failed: dial tcp .*connection refused|\w+ probe failed: .*(timed out|timeout|deadline exceeded))/;
      const hint = / Warning ProbeHint: \w+ probe timed out \d+ times in a row: /;
      dropKeys(ours.events, (event) => (words.test(event) || hint.test(event)) && !(event in theirs.events));
    },
  },
  {
    name: 'a pod that drains',
    reason:
      'readiness is asked for while a pod ends; where many end at once, containerd shows a dead process as running for longer than the prober waits',
    varies: true,
    mayRest: true,
    apply: ({ ours, theirs, ending }) => {
      const words = ' Warning Unhealthy: Readiness probe ';
      dropKeys(ours.events, (event) => event.includes(words) && ending.includes(event) && !(event in theirs.events));
    },
  },
  {
    name: 'limits of whole pods',
    reason: 'on a machine with cgroup v1 only containers are limited, and a pod whose own limits are not is told so',
    varies: true,
    mayRest: true,
    apply: ({ ours, unified }) => {
      if (unified) return;
      dropKeys(ours.events, (event) => event === ' Warning LimitsNotEnforced: pod level');
      if (Array.isArray(ours.status.conditions))
        ours.status.conditions = ours.status.conditions.filter((c) => inside(c).type !== 'podsched.dev/LimitsNotEnforced');
    },
  },
  {
    name: '019: no shared mounts there',
    reason: 'the recording machine could not propagate mounts, and whether this one can is its own affair: the requests are compared',
    varies: true,
    apply: (both) => {
      if (both.of.name === '019-mount-propagation') onlyConfigs(both);
    },
  },
  {
    name: '020: a projected volume',
    reason: 'a kubelet without an API server makes no projected volume, so it asked for nothing; here the pod runs, as any plain one does',
    apply: (both) => {
      if (both.of.name === '020-downward-volume') plainLife(both);
    },
  },
  {
    name: '038: refused for what it asks',
    reason:
      "a static pod is not critical for being static and preempts nobody, so that it is refused plainly; the numbers are the machine's",
    apply: ({ of, ours, theirs }) => {
      if (of.name !== '038-too-big') return;
      const text = "Node didn't have enough resource: cpu, requested: 64000, used: <used>, capacity: <capacity>";
      theirs.status = { ...theirs.status, reason: 'OutOfcpu', message: `Pod was rejected: ${text}` };
      theirs.events = { [` Warning OutOfcpu: ${text}`]: true };
      rewrite(ours, (t) => t.replace(/used: \d+, capacity: \d+/, 'used: <used>, capacity: <capacity>'));
    },
  },
  {
    name: 'a full machine',
    reason:
      'the recording machine had no processor time left for this pod (a static pod counted as critical and tried to preempt); here it fits and runs',
    apply: (both) => {
      const { of, theirs } = both;
      if (!forLackOfSpace.includes(of.name)) return;
      if (theirs.status.reason === refusedForSpace) plainLife(both);
      // the events are of another run than the requests, in which it was this pod that did not fit
      else if (hasEvent(theirs, refusedForSpace)) theirs.events = eventsOfCalls(theirs.sequence, of);
    },
  },
];
