import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasDefaultRoute } from '../../src/gates/defaultRoute.ts';

const head = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n';
const v4 = {
  ofDhcp: `${head}eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n`,
  withoutGateway: `${head}ppp0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n`,
  subnet: `${head}eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n`,
  zeroNetWithMask: `${head}eth0\t00000000\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n`,
  rejecting: `${head}*\t00000000\t00000000\t0200\t0\t0\t0\t00000000\t0\t0\t0\n`,
  empty: head,
};
const zero = '0'.repeat(32);
const row6 = (destination: string, length: string, flags: string, device: string): string =>
  `${destination} ${length} ${zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 ${flags} ${device}\n`;

test('a default route of any family counts when it is up and leads somewhere', () => {
  const table: readonly (readonly [string, string, string, boolean])[] = [
    ['none', '', '', false],
    ['IPv4 by DHCP', v4.ofDhcp, '', true],
    ['IPv4 over a line', v4.withoutGateway, '', true],
    ['only the own network', v4.subnet, '', false],
    ['a network that begins with zeros', v4.zeroNetWithMask, '', false],
    ['an IPv4 route that rejects', v4.rejecting, '', false],
    ['only the head', v4.empty, '', false],
    ['IPv6', v4.empty, row6(zero, '00', '00000003', 'eth0'), true],
    ['the kernel’s own on lo', '', row6(zero, '00', '00200200', 'lo'), false],
    ['an IPv6 network', '', row6(`fe80${'0'.repeat(28)}`, '40', '00000001', 'eth0'), false],
    ['an IPv6 route that rejects', '', row6(zero, '00', '00000201', 'eth0'), false],
  ];
  for (const [name, route, route6, is] of table) assert.equal(hasDefaultRoute(route, route6), is, name);
});
