/** When an image may be repaired: before it is looked for again, with what its last container's end showed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { container, desiredPod, House } from './house.ts';

/** A pod whose container ended with 1, and what was done in which order from then on. */
async function ended(): Promise<{ readonly house: House; readonly pod: ReturnType<typeof desiredPod>; readonly order: string[] }> {
  const house = new House();
  const order: string[] = [];
  house.image = (name) => {
    order.push(`image of ${name}`);
    return { ok: true, image: { id: 'localhost/busybox:1', username: '' } };
  };
  house.repair = async (name, { id, exitCode, state }) => {
    order.push(`repair of ${name}: ${state} ${exitCode} ${id === house.runtime.find('web', name)?.id}`);
    return false;
  };
  const pod = desiredPod({ containers: [container('a'), container('b')] });
  await house.sync(pod);
  assert.deepEqual(order.splice(0), ['image of a', 'image of b'], 'what never ran is no sign of anything');
  house.runtime.exit(house.id('a'), 1);
  return { house, pod, order };
}

test('an image is looked at for damage before each new start, with the container that ended last', async () => {
  const { house, pod, order } = await ended();
  await house.sync(pod);
  assert.deepEqual(order.splice(0), ['repair of a: exited 1 true', 'image of a']);
  house.runtime.exit(house.id('a'), 2);
  await house.sync(pod);
  assert.deepEqual(order, [], 'not while the container waits for its back-off');
  await house.clock.advance(10_000);
  await house.sync(pod);
  assert.deepEqual(order, ['repair of a: exited 2 true', 'image of a']);
});

test('records that a repair took away are a change, and the next attempt is numbered after them', async () => {
  const { house, pod } = await ended();
  house.repair = async (_name, { id }) => {
    await house.runtime.removeContainer(id);
    return true;
  };
  house.image = () => ({ ok: false, reason: 'ErrImagePull', message: 'the line broke' });
  const { results, acted } = await house.sync(pod);
  assert.equal(acted, true);
  assert.equal(results.find((r) => r.target === 'a')?.error?.reason, 'ErrImagePull');
});

test('after a repair the container starts as its next attempt', async () => {
  const { house, pod } = await ended();
  house.repair = async (_name, { id }) => {
    await house.runtime.removeContainer(id);
    return true;
  };
  house.deeds();
  await house.sync(pod);
  assert.deepEqual(house.deeds().slice(-2), ['createContainer a#1', 'startContainer a#1']);
});

test('a sync that is called off during a repair says nothing and starts nothing', async () => {
  const { house, pod } = await ended();
  const off = new AbortController();
  house.repair = async (_name, _ended, signal) => {
    off.abort();
    signal.throwIfAborted();
    return false;
  };
  house.deeds();
  const { results } = await house.sync(pod, off.signal);
  assert.deepEqual(results, []);
  assert.deepEqual(house.deeds(), []);
});
