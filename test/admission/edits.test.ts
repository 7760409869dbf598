/** Edits judged before anything is stopped: who goes on, who ends, who waits for whom. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeEdits } from '../../src/admission/edits.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { EditEffect, PodEdit } from '../../src/api/edit.ts';
import type { PodSpec } from '../../src/api/v1.ts';
import { asking, claiming, edited, node, pod } from './build.ts';

const edit = (before: DesiredPod, spec: Partial<PodSpec>, effect: EditEffect = 'replace'): PodEdit => ({
  before,
  after: edited(before, spec),
  effect,
});
const judge = (edits: readonly PodEdit[], others: readonly DesiredPod[] = [], ending: readonly DesiredPod[] = [], host: number[] = []) => {
  const hostPortsInUse = host.map((port) => ({ protocol: 'TCP', port, ip: '0.0.0.0' }) as const);
  const verdicts = judgeEdits(edits, { active: [...edits.map((e) => e.before), ...others], ending, node: () => node({ hostPortsInUse }) });
  return Object.fromEntries(
    [...verdicts.values()].length === 0 ? [] : [...verdicts].map(([key, v]) => [key.split('/')[2], v.act === 'block' ? v.reason : v.act]),
  );
};
const nvme = { nodeSelector: { disktype: 'nvme' } };

const table: readonly (readonly [what: string, got: Record<string, string>, expected: Record<string, string>])[] = [
  ['an edit that fits', judge([edit(pod('a'), asking({ cpu: '4' }))]), {}],
  ['what it had itself does not count', judge([edit(pod('a', asking({ cpu: '3' })), asking({ cpu: '4' }))]), {}],
  ['too much CPU', judge([edit(pod('a'), asking({ cpu: '3' }))], [pod('b', asking({ cpu: '2' }))]), { a: 'OutOfcpu' }],
  ['too much CPU in a container that would restart in place', judge([edit(pod('a'), asking({ cpu: '5' }), 'update')]), { a: 'OutOfcpu' }],
  ['a label of a pod that has too much already', judge([edit(pod('a', asking({ cpu: '5' })), { priority: 1 }, 'reconcile')]), {}],
  [
    'a port of another pod',
    judge([edit(pod('a'), claiming({ hostPort: 80 }))], [pod('b', claiming({ hostPort: 80 }))]),
    { a: 'NodePorts' },
  ],
  [
    'a port of a pod that is ending',
    judge([edit(pod('a'), claiming({ hostPort: 80 }))], [], [pod('b', claiming({ hostPort: 80 }))]),
    { a: 'NodePorts' },
  ],
  [
    'a port of its own predecessor',
    judge([edit(pod('a', claiming({ hostPort: 80 })), { ...claiming({ hostPort: 80 }), hostPID: true })]),
    {},
  ],
  ['a port of the host', judge([edit(pod('a'), claiming({ hostPort: 22 }))], [], [], [22]), { a: 'NodePorts' }],
  ['moved off the node by its selector, whatever the rest', judge([edit(pod('a'), nvme, 'reconcile')]), { a: 'replace' }],
  ['moved off the node although there is no room either', judge([edit(pod('a'), { ...nvme, ...asking({ cpu: '64' }) })]), { a: 'replace' }],
  ['a selector that still fits', judge([edit(pod('a'), { nodeSelector: { site: 'attic' } }, 'reconcile')]), {}],
  ['a selector that stopped fitting by itself moves nobody', judge([edit(pod('a', nvme), { priority: 1 }, 'reconcile')]), {}],
  ['nor at a restart in place', judge([edit(pod('a', nvme), asking({ cpu: '1' }), 'update')]), {}],
  ['but a replacement is judged by it', judge([edit(pod('a', nvme), { hostPID: true })]), { a: 'replace' }],
  [
    'two that want the same port: the first gets it',
    judge([edit(pod('a'), claiming({ hostPort: 80 })), edit(pod('b'), claiming({ hostPort: 80 }))]),
    { b: 'NodePorts' },
  ],
  [
    'who has a port keeps it through an edit of its own, whoever else waits for it',
    judge([edit(pod('a'), claiming({ hostPort: 80 })), edit(pod('b', claiming({ hostPort: 80 })), { hostPID: true })]),
    { a: 'NodePorts' },
  ],
  [
    'also when the one that waits comes after it',
    judge([edit(pod('a', claiming({ hostPort: 80 })), { hostPID: true }), edit(pod('b'), claiming({ hostPort: 80 }))]),
    { b: 'NodePorts' },
  ],
  [
    'CPU that another gives up in the same step',
    judge([edit(pod('a', asking({ cpu: '3' })), asking({ cpu: '1' })), edit(pod('b', asking({ cpu: '1' })), asking({ cpu: '3' }))]),
    {},
  ],
  [
    'CPU that another would give up, were it not blocked itself',
    judge(
      [
        edit(pod('a', asking({ cpu: '3' })), {
          ...asking({ cpu: '1' }),
          containers: [...(asking({ cpu: '1' }).containers ?? []), ...(claiming({ hostPort: 22 }).containers ?? [])],
        }),
        edit(pod('b', asking({ cpu: '1' })), asking({ cpu: '3' })),
      ],
      [],
      [],
      [22],
    ),
    { a: 'NodePorts', b: 'OutOfcpu' },
  ],
  [
    'a port that moves from one manifest to another is waited for',
    judge([edit(pod('a', claiming({ hostPort: 80 })), claiming({ hostPort: 81 })), edit(pod('b'), claiming({ hostPort: 80 }))]),
    { b: 'NodePorts' },
  ],
  [
    'two that swap their ports go together, since neither would ever end by itself',
    judge([
      edit(pod('a', claiming({ hostPort: 80 })), claiming({ hostPort: 81 })),
      edit(pod('b', claiming({ hostPort: 81 })), claiming({ hostPort: 80 })),
    ]),
    {},
  ],
  [
    'a swap with a third that stands in the way stays blocked',
    judge(
      [
        edit(pod('a', claiming({ hostPort: 80 })), claiming({ hostPort: 81 })),
        edit(pod('b', claiming({ hostPort: 81 })), claiming({ hostPort: 80 }, { hostPort: 82 })),
      ],
      [pod('c', claiming({ hostPort: 82 }))],
    ),
    { a: 'NodePorts', b: 'NodePorts' },
  ],
];

for (const [what, got, expected] of table) {
  test(`${what}: ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(got, expected);
  });
}
