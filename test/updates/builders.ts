/** Desired pods from manifests, and edits between them. */
import type { DesiredPod } from '../../src/api/desired.ts';
import type { EditEffect, PodEdit } from '../../src/api/edit.ts';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import { decodeFile } from '../../src/config/decode.ts';
import { manifest } from '../scenario/world.ts';

export interface PodOptions {
  readonly name?: string;
  readonly uid?: string;
  readonly lines?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
}

export function podOf(containers: readonly string[], { name = 'web', uid = 'u1', lines = [], annotations }: PodOptions = {}): DesiredPod {
  const text = manifest(name, { containers, lines });
  const whole = annotations === undefined ? text : text.replace('spec:', `  annotations: ${JSON.stringify(annotations)}\nspec:`);
  const decoded = decodeFile(
    { name: 'x.yaml', content: { ok: true, bytes: new TextEncoder().encode(whole) } },
    { strict: false, allowedUnsafeSysctls: [], node: { name: 'pi', labels: {} } },
  );
  const [first] = decoded.objects;
  if (first?.object.kind !== 'Pod') throw new Error(JSON.stringify(decoded.problems));
  return toDesiredPod(first.object, { uid: uid as PodUid, source: 'file:x.yaml', nodeName: 'pi', firstSeen: '2026-01-01T00:00:00Z' });
}

export const edit = (before: DesiredPod, after: DesiredPod, effect: EditEffect = 'update'): PodEdit => ({ before, after, effect });
