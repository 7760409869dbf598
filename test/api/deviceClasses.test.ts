import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkConfiguration } from '../../src/api/configurationChecks.ts';
import { decodeObject } from '../../src/api/decode.ts';
import { cdiDevices, deviceShortages, podDevices, wrongDeviceGlob } from '../../src/api/deviceClasses.ts';
import { decode, only, pod, type Raw, rawPod } from './objects.ts';

const limits = (amounts: Raw, requests?: Raw) => rawPod({}, { resources: { limits: amounts, ...(requests && { requests }) } });
const at = 'spec.containers[0].resources';
const deviceClasses = ['gpio', 'i2c', 'serial'];
const judged = (raw: unknown) => decodeObject(raw, { strict: false, deviceClasses });

test('a device is asked for by its class, as a whole number, with a request that is the limit', () => {
  const resource = 'devices.podsched.dev/serial';
  pod(limits({ [resource]: 1 }));
  pod(limits({ [resource]: '2' }, { [resource]: 2 }));
  pod(limits({ [resource]: 0 }));
  assert.equal(only(decode(limits({ [resource]: '500m' })), `${at}.limits[${resource}]`).expected, 'a whole number of devices');
  only(decode(limits({ [resource]: -1 })), `${at}.limits[${resource}]`);
  assert.equal(only(decode(limits({ [resource]: 2 }, { [resource]: 1 })), `${at}.requests[${resource}]`).expected, 'the limit, 2');
  assert.equal(only(decode(limits({}, { [resource]: 1 })), `${at}.limits[${resource}]`).expected, 'the request, 1');
  only(decode(limits({ 'devices.podsched.dev/Serial_0': 1 })), `${at}.limits[devices.podsched.dev/Serial_0]`);
});

test('a class that the configuration has not is refused with the nearest one, and where nobody knows the classes any will do', () => {
  const wrong = 'devices.podsched.dev/serail';
  const problem = only(judged(limits({ [wrong]: 1 })), `${at}.limits[${wrong}]`);
  assert.equal(problem.nearest, 'devices.podsched.dev/serial');
  assert.equal(problem.expected, 'a class of devices of the configuration (devices): gpio, i2c, serial');
  assert.deepEqual(judged(limits({ 'devices.podsched.dev/serial': 1 })).problems, []);
  pod(limits({ [wrong]: 1 }));
  assert.match(
    only(decodeObject(limits({ [wrong]: 1 }), { strict: false, deviceClasses: [] }), `${at}.limits[${wrong}]`).expected,
    /which has none$/,
  );
});

test('a gate for a class that is not there is refused alike', () => {
  const gated = (value: string) => rawPod({}, {}, { annotations: { 'podsched.dev/wait-for': value } });
  const path = 'metadata.annotations[podsched.dev/wait-for]';
  assert.equal(only(judged(gated('network, device:gipo')), path).nearest, 'device:gpio');
  assert.deepEqual(judged(gated('device:gpio')).problems, []);
  pod(gated('device:anything'));
});

test('the agent’s own mark on containers is no annotation of a manifest', () => {
  only(decode(rawPod({}, {}, { annotations: { 'podsched.dev/devices': '[]' } })), 'metadata.annotations[podsched.dev/devices]');
});

test('names of the Container Device Interface are whole names', () => {
  const annotated = (value: string) => rawPod({}, {}, { annotations: { 'cdi.k8s.io/gpu': value } });
  const good = pod(annotated('vendor.com/class=gpu0, vendor.com/class=gpu1'));
  assert.deepEqual(cdiDevices(good.metadata), ['vendor.com/class=gpu0', 'vendor.com/class=gpu1']);
  for (const value of ['', 'gpu0', 'vendor.com/class', 'vendor.com/class=', 'vendor.com/class=a,,b', '/dev/null', 'a/b=c/d']) {
    only(decode(annotated(value)), 'metadata.annotations[cdi.k8s.io/gpu]');
  }
  assert.deepEqual(decode(annotated(`a${'.'.repeat(100_000)}`)).problems.length, 1);
});

test('classes are paths and globs under /dev, and nothing that leads out of it', () => {
  for (const glob of ['/dev/gpiochip*', '/dev/serial/by-id/usb-*', '/dev/i2c-[0-9]', '/dev/video0', '/dev/.x'])
    assert.equal(wrongDeviceGlob(glob), undefined, glob);
  for (const glob of [
    '',
    '/dev',
    '/dev/',
    'dev/video0',
    '/etc/passwd',
    '/dev/../etc/*',
    '/dev/a/..',
    '/dev//a',
    '/dev/./a',
    '/dev/a/',
    '/dev/\0',
  ])
    assert.notEqual(wrongDeviceGlob(glob), undefined, glob);
});

test('every mistake of the key devices is told with its place', () => {
  const base = { imageGCLowThresholdPercent: 80, imageGCHighThresholdPercent: 85 };
  const places = (devices: unknown): string[] =>
    checkConfiguration({ ...base, devices }).flatMap(({ path }) => (path.startsWith('devices') ? [path] : []));
  assert.deepEqual(places({ gpio: ['/dev/gpiochip*'], 'my-cam': ['/dev/video0', '/dev/video1'] }), []);
  assert.deepEqual(places({ Gpio: ['/dev/gpiochip*'], i2c: [], cam: ['/dev/video0', 'video1'] }), [
    'devices.Gpio',
    'devices.i2c',
    'devices.cam[1]',
  ]);
});

test('what a pod needs of a class: its containers together, or one init container', () => {
  const c = (name: string, n: number, more: Raw = {}): Raw => ({
    name,
    image: 'x:1',
    resources: { limits: { 'devices.podsched.dev/serial': n, 'devices.podsched.dev/i2c': 0 } },
    ...more,
  });
  const spec = { containers: [c('a', 1), c('b', 1)], initContainers: [c('i', 1), c('s', 1, { restartPolicy: 'Always' })] };
  assert.deepEqual([...podDevices(pod(rawPod(spec)))], [['serial', 3]]);
  assert.deepEqual([...podDevices(pod(rawPod()))], []);
});

test('too little is left only where others have what would do; what is not there at all is waited for', () => {
  const wants = (n: number) => pod(limits({ 'devices.podsched.dev/serial': n }));
  const shortages = (n: number, others: readonly number[], present: number) =>
    deviceShortages(wants(n), others.map(wants), () => present).map(({ requested, used, capacity }) => [requested, used, capacity]);
  const table: readonly (readonly [number, readonly number[], number, readonly number[][]])[] = [
    [1, [], 0, []],
    [1, [], 1, []],
    [1, [1], 1, [[1, 1, 1]]],
    [1, [1], 2, []],
    [2, [], 1, []],
    [2, [1], 2, [[2, 1, 2]]],
    // unplugged: who has it and who comes both wait
    [1, [1], 0, []],
    [1, [5], 1, [[1, 5, 1]]],
  ];
  for (const [n, others, present, expected] of table) assert.deepEqual(shortages(n, others, present), expected);
  const [shortage] = deviceShortages(wants(1), [wants(1)], () => 1);
  assert.equal(shortage?.resource, 'devices.podsched.dev/serial');
});
