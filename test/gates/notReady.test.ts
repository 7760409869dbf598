import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodStatus } from '../../src/api/status.ts';
import { notReadyText } from '../../src/gates/notReady.ts';

const ready = (status: string) => [{ type: 'Ready', status }] as unknown as NonNullable<PodStatus['conditions']>;

test('a pod is ready by its condition, and one that has ended never is', () => {
  const table: readonly (readonly [Parameters<typeof notReadyText>[0], string | undefined])[] = [
    [undefined, 'is not started yet'],
    [{ phase: 'Pending' }, 'is not ready'],
    [{ phase: 'Running', conditions: ready('False') }, 'is not ready'],
    [{ phase: 'Running', conditions: ready('True') }, undefined],
    [{ phase: 'Succeeded', conditions: ready('True') }, 'has ended (Succeeded), so it is not ready'],
    [{ phase: 'Failed', reason: 'OutOfmemory' }, 'has ended (OutOfmemory), so it is not ready'],
  ];
  for (const [status, text] of table) assert.equal(notReadyText(status), text);
});
