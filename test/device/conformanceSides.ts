// pure
/** One pod on both sides, in one shape: what this run saw of it, and what was recorded; and what is left of their differences. */
import { differences, type Json } from '../conformance/kubelet-1.32/recording.ts';
import { type Both, type Rule, rules, type Side } from './conformanceAllowed.ts';
import {
  inside,
  isFields,
  items,
  normal,
  normalContainer,
  normalText,
  type Place,
  recordedMachine,
  recordedText,
} from './conformanceNormal.ts';
import type { Case, Fields, RecordedEvent } from './conformanceRecordings.ts';
import { ourSequence, recordedSequence } from './conformanceSequence.ts';
import type { CriRecorder } from './criRecorder.ts';

/** What was seen of a pod in this run. */
export interface Seen {
  /** By the local API; undefined: it is not shown. */
  readonly pod: Fields | undefined;
  /** Of all pods. */
  readonly events: readonly Fields[];
  /** Those of them that first came after the manifests had gone. */
  readonly ending: ReadonlySet<Fields>;
  readonly recorder: Pick<CriRecorder, 'calls' | 'sandboxes' | 'containers'>;
}

const fields = (value: Json | undefined): Fields => (isFields(value) ? value : {});

/** `namespace/name` of a metadata or reference. */
export const keyOf = (o: Json | undefined): string => `${inside(o).namespace}/${inside(o).name}`;

/** Pod addresses are of the bed's network; the machine's own may be of such a network too, and stay. */
function podAddresses(status: Fields): Fields {
  const host = [status.hostIP, ...items(status.hostIPs).map((entry) => entry.ip)];
  const address = (ip: Json | undefined): Json =>
    /^10\.\d+\.\d+\.\d+$/.test(String(ip)) && !host.includes(ip) ? '<pod-ip>' : (ip ?? null);
  if ('podIP' in status) status.podIP = address(status.podIP);
  for (const entry of items(status.podIPs)) entry.ip = address(entry.ip);
  return status;
}

const specOf = (spec: Fields, name: string): Fields =>
  [...items(spec.initContainers), ...items(spec.containers)].find((c) => c.name === name) ?? {};

const eventKey = (e: RecordedEvent): string => `${e.fieldPath} ${e.type} ${e.reason}: ${e.message}`;

/** The end of its name counts when it first came; a list has repeats where they were last seen. */
const began = (e: Fields): string => /[0-9a-f]+$/.exec(String(inside(e.metadata).name))?.[0].padStart(24, '0') ?? '';

/** What of this run is known of a pod's texts. One instance: its UID must be the same everywhere. */
function ourText(of: Case, { pod, recorder }: Seen, place: Place): (text: string) => string {
  const uid = String(inside(recorder.sandboxes.get(of.key), 'metadata').uid ?? inside(pod, 'metadata').uid ?? '<none>');
  return (t) => normalText(t, uid, place);
}

/** Of a pod, in the order in which they first came. */
function ourEvents(of: Case, events: readonly Fields[], text: (t: string) => string): string[] {
  return events
    .filter((e) => keyOf(e.involvedObject) === of.key)
    .sort((a, b) => (began(a) < began(b) ? -1 : 1))
    .map((e) => {
      const { fieldPath = '' } = inside(e.involvedObject);
      return eventKey({ fieldPath: String(fieldPath), type: String(e.type), reason: String(e.reason), message: text(String(e.message)) });
    });
}

function ourSide(of: Case, seen: Seen, place: Place): Side {
  const { pod, events, recorder } = seen;
  const sandbox = recorder.sandboxes.get(of.key);
  const text = ourText(of, seen, place);
  const spec = fields(of.recording?.spec);
  const containers = [...recorder.containers].filter(([key]) => key.startsWith(`${of.key} `));
  const calls = recorder.calls.filter((c) => c.pod === of.key);
  const part = (key: string) => fields(normal(pod?.[key] ?? {}, text));
  return {
    sandbox: sandbox === undefined ? null : normal(sandbox, text),
    containers: Object.fromEntries(
      containers.map(([key, value]) => {
        const name = key.slice(of.key.length + 1);
        return [name, normalContainer(fields(normal(value, text)), specOf(spec, name), place)];
      }),
    ),
    sequence: ourSequence(calls, of),
    metadata: part('metadata'),
    spec: part('spec'),
    status: podAddresses(part('status')),
    events: Object.fromEntries(ourEvents(of, events, text).map((key) => [key, true])),
  };
}

function theirSide(of: Case): Side {
  const r = of.recording;
  if (r === undefined) throw new Error(`${of.name} has no recording`);
  const containers = Object.entries(r.containers).map(([name, config]) => {
    const recorded = fields(normal(config, recordedText));
    return [name, normalContainer(recorded, specOf(r.spec, name), recordedMachine)] as const;
  });
  return {
    sandbox: r.sandbox === null ? null : normal(r.sandbox, recordedText),
    containers: Object.fromEntries(containers),
    sequence: recordedSequence(r.sequence, of),
    metadata: fields(normal(r.metadata, recordedText)),
    spec: fields(normal(r.spec, recordedText)),
    status: fields(normal(r.status, recordedText)),
    events: Object.fromEntries(of.events.map((e) => [eventKey({ ...e, message: recordedText(e.message) }), true])),
  };
}

/** By field path, the events that both sides have in the order in which `side` has them. What only one has is a difference already. */
function orderOfEvents(side: Side, other: Side): { [fieldPath: string]: Json } {
  const order = new Map<string, string>();
  for (const event of Object.keys(side.events).filter((e) => e in other.events)) {
    const at = event.slice(0, event.indexOf(' '));
    order.set(at, `${order.get(at) ?? ''}\n${event}`);
  }
  return Object.fromEntries(order);
}

function bothSides(of: Case, seen: Seen, place: Place): Both {
  const text = ourText(of, seen, place);
  const before = seen.events.filter((e) => !seen.ending.has(e));
  const earlier = new Set(ourEvents(of, before, text));
  return {
    of,
    ours: ourSide(of, seen, place),
    theirs: theirSide(of),
    ending: ourEvents(of, [...seen.ending], text).filter((key) => !earlier.has(key)),
    unified: place.unified,
  };
}

/** What is left of the differences after the allowed ones, or after all of them but one. */
export function judge(of: Case, seen: Seen, place: Place, without?: Rule): string[] {
  const both = bothSides(of, seen, place);
  for (const rule of rules) if (rule !== without) rule.apply(both);
  const flat = (side: Side, other: Side): Json => ({
    ...side,
    order: orderOfEvents(side, other),
    sequence: {
      start: side.sequence.start.join(', '),
      edit: side.sequence.edit.join(', '),
      delete: side.sequence.delete.join(', '),
      exec: Object.fromEntries(side.sequence.exec.map((e) => [e, true])),
    },
  });
  return differences(flat(both.ours, both.theirs), flat(both.theirs, both.ours));
}

/** Whether a rule has anything to do with a pod. `differs`: how many differences are left with it. */
export function needed(rule: Rule, of: Case, seen: Seen, place: Place, differs: number): boolean {
  if (rule.varies === undefined) return judge(of, seen, place, rule).length > differs;
  const both = bothSides(of, seen, place);
  const before = JSON.stringify(both);
  rule.apply(both);
  return JSON.stringify(both) !== before;
}
