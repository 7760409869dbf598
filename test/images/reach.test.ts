import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeError } from '../../src/container/runtime.ts';
import { Reach } from '../../src/images/reach.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

const refused = 'failed to do request: Head "https://r.example/v2/": dial tcp 192.0.2.1:443: connect: connection refused';
const unknown = 'failed to resolve reference "r.example/x:1": r.example/x:1: not found';

test('a registry that did not answer makes the node one that cannot pull, until it answers or half an hour is over', async () => {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock });
  const reach = new Reach(clock);
  const images = reach.watching(runtime);
  const set = (name: string, text?: string) =>
    runtime.images.set(name, text === undefined ? { state: 'pullable' } : { state: 'failing', error: new RuntimeError('unknown', text) });
  const pull = (name: string) => images.pullImage(name).catch((e: Error) => e.message);
  assert.equal(reach.unreachable(), false, 'nobody has asked yet');

  set('r.example/x:1', refused);
  assert.equal(await pull('r.example/x:1'), refused, 'the failure goes on to who asked');
  assert.equal(reach.unreachable(), true);
  set('other.example/x:1');
  await pull('other.example/x:1');
  assert.equal(reach.unreachable(), true, 'another registry’s answer says nothing of this one');
  set('r.example/x:1', unknown);
  await pull('r.example/x:1');
  assert.equal(reach.unreachable(), false, 'no is an answer');

  set('r.example/x:1', refused);
  await pull('r.example/x:1');
  set('r.example/y:1');
  await pull('r.example/y:1');
  assert.equal(reach.unreachable(), false, 'a pull that worked is one');

  await pull('r.example/x:1');
  await clock.advance(30 * 60_000);
  assert.equal(reach.unreachable(), true);
  await clock.advance(1);
  assert.equal(reach.unreachable(), false);
});

test('a pull that was ended says nothing, and everything else of the service is passed on', async () => {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock });
  const reach = new Reach(clock);
  const images = reach.watching(runtime);
  runtime.images.set('r.example/x:1', { state: 'failing', pullMs: 1000, error: new RuntimeError('unknown', refused) });
  const end = new AbortController();
  const pulling = images.pullImage('r.example/x:1', { signal: end.signal });
  await clock.advance(500);
  end.abort(new Error('connection refused'));
  await assert.rejects(pulling);
  assert.equal(reach.unreachable(), false);
  await Promise.all([images.listImages(), images.imageStatus('a'), images.removeImage('a'), images.imageFilesystems()]);
  const methods = ['listImages', 'imageStatus', 'removeImage', 'imageFilesystems'];
  assert.deepEqual(
    runtime.calls.slice(-4).map((c) => c.method),
    methods,
  );
});
