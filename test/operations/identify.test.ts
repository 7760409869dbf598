/** The light: it blinks, and is then what it was, whoever ends first. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Identify } from '../../src/operations/identify.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { until } from '../until.ts';

interface Rig {
  readonly clock: FakeClock;
  readonly store: MemoryStore;
  readonly root: string;
  readonly file: (name: string, light?: string) => string;
  readonly agent: () => Identify;
}

async function withLights(
  lights: Readonly<Record<string, Readonly<Record<string, string>>>>,
  work: (r: Rig) => Promise<void>,
): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'podsched-leds-'));
  for (const [light, files] of Object.entries(lights)) {
    mkdirSync(join(root, 'class/leds', light), { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(root, 'class/leds', light, name), text);
  }
  const [clock, store] = [new FakeClock(), new MemoryStore()];
  const file = (name: string, light = 'ACT') => readFileSync(join(root, 'class/leds', light, name), 'utf8').trim();
  const agent = () => new Identify({ clock, log: silentLog, sysRoot: root, store });
  try {
    await work({ clock, store, root, file, agent });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const act = { trigger: 'none rc-feedback timer [mmc0] default-on\n', brightness: '0\n', max_brightness: '255\n' };

/** The clock goes on while files are written beside it. */
const goOn = (r: Rig, what: string, done: () => boolean): Promise<void> =>
  until(what, async () => {
    await r.clock.advance(50);
    return done();
  });

test('it blinks as long as was asked, and its trigger and brightness are back', () =>
  withLights({ ACT: act, 'eth0:link': act }, async (r) => {
    const identify = r.agent();
    assert.deepEqual(await identify.blink(2), { ok: true, value: 'ACT' });
    const seen = new Set<string>();
    assert.equal(r.file('trigger'), 'none');
    await goOn(r, 'the trigger is back', () => {
      seen.add(r.file('brightness'));
      return r.file('trigger') === 'mmc0';
    });
    assert.deepEqual([seen.has('255'), seen.has('0')], [true, true]);
    await until('nothing is remembered', async () => (await r.store.list('light')).length === 0);
    assert.equal(r.file('brightness'), '0');
    assert.match(r.file('trigger', 'eth0:link'), /\[mmc0\]/);
  }));

test('an agent that ends in the midst puts it back, and one that was killed leaves that to the next', () =>
  withLights({ ACT: act }, async (r) => {
    const first = r.agent();
    await first.blink(100);
    await first.stop();
    assert.deepEqual([r.file('trigger'), await r.store.list('light')], ['mmc0', []]);

    writeFileSync(join(r.root, 'class/leds/ACT/trigger'), act.trigger);
    await r.agent().blink(100); // nobody hears of this agent again
    await until('it shines', () => r.file('brightness') === '255');
    assert.equal(r.file('trigger'), 'none');
    await r.agent().load();
    assert.deepEqual([r.file('trigger'), r.file('brightness'), await r.store.list('light')], ['mmc0', '0', []]);
  }));

test('asked again while it blinks, it goes on as long as was asked last, and what it was at first is what comes back', () =>
  withLights({ led0: act }, async (r) => {
    const identify = r.agent();
    const both = await Promise.all([identify.blink(1), identify.blink(20)]);
    assert.deepEqual(both, [
      { ok: true, value: 'led0' },
      { ok: true, value: 'led0' },
    ]);
    const from = r.clock.monotonic();
    await goOn(r, 'the trigger is back', () => r.file('trigger', 'led0') === 'mmc0');
    assert.ok(r.clock.monotonic() - from >= 20_000);
    await identify.stop();
    assert.equal(r.file('trigger', 'led0'), 'mmc0');
  }));

test('a machine without a light of its own says so, and one that may not be written too', async () => {
  for (const lights of [{}, { 'eth0:link': act }]) {
    await withLights(lights, async (r) => {
      const answer = await r.agent().blink(1);
      assert.match(answer.ok ? '' : answer.message, /has no light that could blink/);
      assert.deepEqual(await r.store.list(''), []);
    });
  }
  await withLights({ ACT: {} }, async (r) => {
    const answer = await r.agent().blink(1);
    assert.match(answer.ok ? '' : answer.message, /cannot be used: ENOENT/);
  });
});
