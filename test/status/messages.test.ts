import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { V1ContainerStatus } from '../../src/api/status.ts';
import { cutMessages } from '../../src/status/messages.ts';

const status = (o: Partial<V1ContainerStatus>): V1ContainerStatus => ({
  name: 'c',
  state: {},
  lastState: {},
  ready: false,
  restartCount: 0,
  image: '',
  imageID: '',
  ...o,
});
const ended = (message: string) => ({ terminated: { exitCode: 1, message } });

test('the containers of a pod share 12 KiB: each message is cut to its share, the present one and the last', () => {
  for (const [containers, bytes] of [
    [1, 12_288],
    [3, 4096],
    [5, 2457],
    [0, 12_288],
  ] as const) {
    const [cut] = cutMessages([status({ state: ended('x'.repeat(20_000)), lastState: ended('y'.repeat(20_000)) })], containers);
    assert.equal(cut?.state.terminated?.message, 'x'.repeat(bytes));
    assert.equal(cut?.lastState.terminated?.message, 'y'.repeat(bytes));
    assert.equal(cut?.state.terminated?.exitCode, 1);
  }
});

test('a character is not cut in two, and bytes count, not characters', () => {
  const [cut] = cutMessages([status({ state: ended(`a${'€'.repeat(5000)}`) })], 3);
  assert.equal(cut?.state.terminated?.message, `a${'€'.repeat(1365)}`);
});

test('what is short, and what has not ended, stays the very same', () => {
  const statuses = [
    status({ state: ended('short') }),
    status({ state: { waiting: { reason: 'X', message: 'w'.repeat(20_000) } } }),
    status({}),
  ];
  const cut = cutMessages(statuses, 3);
  for (const [i, s] of statuses.entries()) assert.equal(cut[i], s);
});
