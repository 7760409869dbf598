import assert from 'node:assert/strict';
import type { Stats } from 'node:fs';
import { statSync } from 'node:fs';
import { test } from 'node:test';
import { HostLooks } from '../../src/volumes/hostLooks.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

/** A node whose paths below /away never answer. */
function node() {
  const clock = new FakeClock();
  const asked: string[] = [];
  const back: (() => void)[] = [];
  const looks = new HostLooks({
    clock,
    stat: async (path): Promise<Stats> => {
      asked.push(path);
      if (path.startsWith('/away')) await new Promise<void>((resolve) => back.push(resolve));
      return statSync('/');
    },
  });
  const at = (path: string): Promise<string> =>
    looks.at(path).then(
      () => 'there',
      (e: Error) => e.message,
    );
  return { clock, asked, back, at };
}

test('pods on a server that is away hold one thread, not all of the agent’s, and are told', async () => {
  const { clock, asked, at } = node();
  const said = Array.from({ length: 6 }, () => at('/away/nas'));
  await clock.advance(11_000);
  assert.deepEqual(await Promise.all(said), Array(6).fill('does not answer (10 s)'));
  assert.deepEqual(asked, ['/away/nas']);
  assert.equal(await at('/mnt/disk'), 'there');
  const again = at('/away/nas');
  await clock.advance(11_000);
  await again;
  assert.deepEqual(asked, ['/away/nas', '/mnt/disk']);
});

test('with several servers away two threads are all that waits, the rest is told why, and all goes on when one is back', async () => {
  const { clock, asked, back, at } = node();
  const said = ['/away/1', '/away/2', '/away/3', '/mnt/disk'].map(at);
  await clock.advance(11_000);
  assert.deepEqual(await Promise.all(said), [
    ...Array(2).fill('does not answer (10 s)'),
    ...Array(2).fill('does not answer (10 s), and neither do other paths that were asked for before'),
  ]);
  assert.deepEqual(asked, ['/away/1', '/away/2']);
  back[0]?.();
  await clock.advance(0);
  assert.equal(await at('/mnt/disk'), 'there');
});

test('what is not there is nothing, and what may not be looked at is said', async () => {
  const looks = new HostLooks({ clock: new FakeClock() });
  assert.equal(await looks.at('/proc/self/never-there'), undefined);
  assert.equal(await looks.at('/proc/self/stat/below'), undefined);
  await assert.rejects(looks.at(`/${'x'.repeat(300)}`), /^Error: cannot be looked at \(ENAMETOOLONG\)$/);
});
