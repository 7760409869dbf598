import assert from 'node:assert/strict';
import { test } from 'node:test';
import { annotations } from '../../src/container/words.ts';
import { Adoption } from '../../src/kuberuntime/adopt.ts';
import { container, desiredPod, House } from './house.ts';

/** Writes another hash on the record of `c`, as another release would have. */
function rewrite(house: House, hash: string): void {
  const record = house.runtime.find('web', 'c');
  assert.ok(record);
  Object.assign(record.config.annotations, { [annotations.ourContainerHash]: hash });
}

test('a hash of an unknown scheme restarts nothing, and is told once', async () => {
  const house = new House();
  const pod = desiredPod({});
  await house.sync(pod);
  rewrite(house, '9:abcdef');
  house.deeds();
  house.events.length = 0;
  await house.sync(pod);
  await house.sync(pod);
  assert.deepEqual(house.deeds(), []);
  assert.deepEqual(house.events, ['c Normal Adopted: Container c of another release was adopted as it is']);
});

test('what was adopted is compared from then on, over agent restarts too', async () => {
  const house = new House();
  const pod = desiredPod({});
  await house.sync(pod);
  rewrite(house, '9:abcdef');
  await house.sync(pod);
  const later = new Adoption({ store: house.store, scheme: '1', hashIn: () => undefined, event: () => assert.fail('told twice') });
  await later.load();
  const edited = desiredPod({ containers: [container('c', { args: ['new'] })] });
  await later.review(edited, await house.inspect(edited));
  assert.equal(later.sameHash('9:abcdef', pod.containerHashes.c ?? '', house.id('c')), true);
  assert.equal(later.sameHash('9:abcdef', edited.containerHashes.c ?? '', house.id('c')), false);
  await later.retain(new Set());
  assert.deepEqual(await house.store.list('adopted/'), []);
});

test('a hash of a known older scheme is compared by that scheme', async () => {
  const house = new House();
  const pod = desiredPod({});
  await house.sync(pod);
  const older = (answer: string) =>
    new Adoption({
      store: house.store,
      scheme: '1',
      hashIn: (scheme) => (scheme === '0' ? answer : undefined),
      event: () => assert.fail(),
    });
  rewrite(house, '0:aaaa');
  const wanted = pod.containerHashes.c ?? '';
  const changed = older('0:bbbb');
  await changed.review(pod, await house.inspect(pod));
  assert.equal(changed.sameHash('0:aaaa', wanted, house.id('c')), false);
  const same = older('0:aaaa');
  await same.review(pod, await house.inspect(pod));
  assert.equal(same.sameHash('0:aaaa', wanted, house.id('c')), true);
});

test('C6: what a later release adopted in its own scheme does not count after a downgrade', async () => {
  const house = new House();
  const pod = desiredPod({});
  await house.sync(pod);
  const wanted = pod.containerHashes.c ?? '';
  house.store.entries.set(`adopted/${house.id('c')}`, '"2:feedfeedfeed"');
  await house.adoption.load();
  await house.adoption.review(pod, await house.inspect(pod));
  assert.equal(house.adoption.sameHash(wanted, wanted, house.id('c')), true);
  assert.deepEqual(
    house.events.filter((e) => e.includes('Adopted')),
    [],
  );
});

test('an entry that cannot be read is no reason not to start', async () => {
  const house = new House();
  house.store.entries.set('adopted/x', '{torn');
  await house.adoption.load();
  assert.equal(house.adoption.sameHash('1:a', '1:a', 'x'), true);
});
