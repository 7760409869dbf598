/** The manifests and what a real kubelet 1.32 made of them (test/conformance/kubelet-1.32), read from their files. */
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Pod } from '../../src/api/v1.ts';
import type { Json } from '../conformance/kubelet-1.32/recording.ts';

export type Fields = { [key: string]: Json };

/** `[phase, call, details, repeats]` */
export type RecordedEntry = readonly [
  phase: string,
  call: string,
  details: {
    readonly container?: string;
    readonly attempt?: number;
    readonly timeout?: number;
    readonly cmd?: readonly string[];
    readonly ok?: boolean;
  },
  repeats: number,
];

export interface Recording {
  readonly manifest: string;
  readonly podName: string;
  /** null: none was ever asked for. */
  readonly sandbox: Fields | null;
  readonly containers: Readonly<Record<string, Fields>>;
  readonly sequence: readonly RecordedEntry[];
  readonly metadata: Fields;
  readonly spec: Fields;
  readonly status: Fields;
}

export interface RecordedEvent {
  readonly fieldPath: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

export interface Case {
  /** `018-volumes` */
  readonly name: string;
  readonly manifest: string;
  readonly text: string;
  readonly pod: Pod;
  /** `namespace/name` */
  readonly key: string;
  /** undefined: the kubelet refused the file. */
  readonly recording: Recording | undefined;
  readonly events: readonly RecordedEvent[];
}

const folder = new URL('../conformance/kubelet-1.32/', import.meta.url);

function readEvents(): Map<string, RecordedEvent[]> {
  const events = new Map<string, RecordedEvent[]>();
  const [, , ...lines] = readFileSync(new URL('events.tsv', folder), 'utf8').trimEnd().split('\n');
  for (const line of lines) {
    const [manifest = '', fieldPath = '', type = '', reason = '', message = ''] = line.split('\t');
    events.set(manifest, [...(events.get(manifest) ?? []), { fieldPath, type, reason, message }]);
  }
  return events;
}

/** All manifests, in the order of their numbers. */
export function readCases(): Case[] {
  const events = readEvents();
  const recordings = new Map(
    readdirSync(new URL('recorded/', folder)).map((file) => {
      const recording = JSON.parse(readFileSync(new URL(`recorded/${file}`, folder), 'utf8')) as Recording;
      return [recording.manifest, recording] as const;
    }),
  );
  return readdirSync(new URL('manifests/', folder))
    .sort()
    .map((manifest) => {
      const text = readFileSync(new URL(`manifests/${manifest}`, folder), 'utf8');
      const pod = parse(text) as Pod;
      return {
        name: manifest.replace(/\.[a-z]+$/, ''),
        manifest,
        text,
        pod,
        key: `${pod.metadata.namespace ?? 'default'}/${pod.metadata.name}`,
        recording: recordings.get(manifest),
        events: events.get(manifest) ?? [],
      };
    });
}
