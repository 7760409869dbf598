/** A desired pod for tests of pod/: one container `app`, everything else as asked. */
import type { DesiredPod } from '../../src/api/desired.ts';
import { type KeyText, keyText, type PodUid } from '../../src/api/objects.ts';
import type { Pod } from '../../src/api/v1.ts';

export function desiredPod(
  name: string,
  uid: string,
  o: { readonly graceSeconds?: number; readonly deletionSeconds?: number; readonly spec?: Partial<Pod['spec']> } = {},
): DesiredPod {
  const key: KeyText = keyText({ kind: 'Pod', namespace: 'default', name });
  return {
    uid: uid as PodUid,
    key,
    name,
    namespace: 'default',
    source: `file:${name}.yaml`,
    revision: uid,
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: 'default',
        uid,
        ...(o.deletionSeconds !== undefined && { deletionGracePeriodSeconds: o.deletionSeconds }),
      },
      spec: {
        terminationGracePeriodSeconds: o.graceSeconds ?? 30,
        restartPolicy: 'Always',
        ...o.spec,
        containers: o.spec?.containers ?? [{ name: 'app', image: 'localhost/busybox:1' }],
      },
    },
    podHash: '1:p',
    containerHashes: { app: '1:c' },
    workHash: `1:${uid}`,
    firstSeen: '2026-01-01T00:00:00Z',
  };
}
