import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RuntimeCondition, RuntimeError } from '../../src/container/runtime.ts';
import { RuntimeState } from '../../src/node/runtimeState.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

const good: RuntimeCondition[] = [
  { type: 'RuntimeReady', status: true, reason: '', message: '' },
  { type: 'NetworkReady', status: true, reason: '', message: '' },
];

function setUp() {
  const clock = new FakeClock();
  const told: boolean[] = [];
  let asked = 0;
  let answer: RuntimeCondition[] | RuntimeError = new RuntimeError('unavailable', 'connect ENOENT /run/containerd/containerd.sock');
  const state = new RuntimeState({
    clock,
    log: silentLog,
    runtime: {
      version: async () => {
        if (answer instanceof RuntimeError) throw answer;
        return { runtimeName: 'containerd', runtimeVersion: '1.6.20' };
      },
      status: async () => {
        asked++;
        if (answer instanceof RuntimeError) throw answer;
        return answer;
      },
    },
    changed: (up) => told.push(up),
  });
  const setAnswer = (a: RuntimeCondition[] | RuntimeError) => {
    answer = a;
  };
  return { clock, told, state, asked: () => asked, answer: setAnswer };
}

test('an absent runtime is told with its reason and asked again until it is there', async () => {
  const { clock, told, state, answer } = setUp();
  const stop = new AbortController();
  const running = state.run(stop.signal);
  await clock.advance(10_000);
  assert.match(state.down() ?? '', /ENOENT/);
  answer(good);
  await clock.advance(5_000);
  assert.equal(state.down(), undefined);
  assert.equal(state.networkError(), undefined);
  assert.equal(state.runtimeVersion(), '1.6.20');
  assert.equal(told.at(-1), true);
  stop.abort();
  await running;
});

test('a healthy runtime is asked once a minute, and at once when a call failed', async () => {
  const { clock, state, asked, answer } = setUp();
  answer(good);
  const stop = new AbortController();
  const running = state.run(stop.signal);
  await clock.advance(600_000);
  assert.equal(asked(), 11);
  answer(new RuntimeError('unavailable', 'gone'));
  state.suspect();
  await clock.advance(0);
  assert.equal(state.down(), 'gone');
  stop.abort();
  await running;
});

test('a network that is not ready leaves the runtime up and says why', async () => {
  const { state, answer } = setUp();
  answer([
    good[0] as RuntimeCondition,
    { type: 'NetworkReady', status: false, reason: 'NetworkPluginNotReady', message: 'cni plugin not initialized' },
  ]);
  await state.check();
  assert.equal(state.down(), undefined);
  assert.equal(state.networkError(), 'cni plugin not initialized');
});
