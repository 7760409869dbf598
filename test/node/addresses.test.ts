import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { test } from 'node:test';
import { defaultInterface, hostIps, recentHostIps } from '../../src/node/addresses.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

const head = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n';
const table: readonly (readonly [what: string, route: string, name: string | undefined])[] = [
  ['the line to everywhere', `${head}wlan0\t0000A8C0\t00000000\t0001\neth0\t00000000\t0100A8C0\t0003\n`, 'eth0'],
  ['of two the first', `${head}eth0\t00000000\t0100A8C0\nwlan0\t00000000\t0100A8C0\n`, 'eth0'],
  ['only networks of its own', `${head}eth0\t0000A8C0\t00000000\n`, undefined],
  ['no routes', head, undefined],
  ['nothing', '', undefined],
];
for (const [what, route, name] of table) {
  test(`the interface that leads out: ${what}`, () => assert.equal(defaultInterface(route), name));
}

test('at most one address of each family, IPv4 first, never loopback or link-local; a missing route file is no error', () => {
  for (const file of ['/proc/net/route', '/nowhere']) {
    const ips = hostIps(file);
    const families = ips.map((ip) => isIP(ip));
    assert.deepEqual(
      families,
      [4, 6].filter((f) => families.includes(f)),
    );
    for (const ip of ips) assert.doesNotMatch(ip, /^(127\.|::1$|fe80:)/);
  }
});

test('addresses that are asked for all the time are read once a second, and one that changed is known then', async () => {
  const clock = new FakeClock();
  let [reads, address] = [0, '10.0.0.1'];
  const ips = recentHostIps(clock, () => {
    reads += 1;
    return [address];
  });
  for (let i = 0; i < 100; i++) assert.deepEqual(ips(), ['10.0.0.1']);
  assert.equal(reads, 1);
  address = '10.0.0.2';
  await clock.advance(1_000);
  assert.deepEqual(ips(), ['10.0.0.2']);
});
