import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { test } from 'node:test';
import { wrongIp } from '../../src/api/names.ts';

test('IP addresses are judged as Node judges them', () => {
  const addresses = [
    '1.2.3.4',
    '0.0.0.0',
    '256.1.1.1',
    '01.2.3.4',
    '1.2.3',
    '::',
    '::1',
    '1::',
    'fe80::1',
    '1:2:3:4:5:6:7:8',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
  ];
  const more = [
    '1::2::3',
    '::ffff:1.2.3.4',
    '::1.2.3.256',
    '12345::',
    'g::',
    '',
    ':',
    ':::',
    '1:',
    ':1',
    '1:2:3:4:5:6:7::',
    '::2:3:4:5:6:7:8',
    '1::3:4:5:6:7:8',
    '1:2:3:4:5:6:1.2.3.4',
  ];
  for (const ip of [...addresses, ...more]) assert.equal(wrongIp(ip) === undefined, isIP(ip) !== 0, ip);
});
