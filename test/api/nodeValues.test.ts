// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of manifests, not templates
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NodeValues, substituteNode } from '../../src/api/nodeValues.ts';
import { cpuMs } from '../until.ts';

const node: NodeValues = {
  name: 'pi-07',
  arch: 'arm64',
  model: 'Raspberry Pi 4 Model B Rev 1.4',
  serial: '10000000a1b2c3d4',
  labels: { site: 'attic', 'example.org/rack': 'r2', 'kubernetes.io/arch': 'arm64', odd: '"\n${NODE.name}', empty: '', name: 'not this' },
};
const text = (written: string): string => (substituteNode({ a: written }, node).value as { a: string }).a;

test('names of the node are replaced inside string values, and what is put in is not looked at again', () => {
  const table: readonly (readonly [string, string])[] = [
    ['${NODE.name}', 'pi-07'],
    ['${NODE.arch}', 'arm64'],
    ['${NODE.model}', 'Raspberry Pi 4 Model B Rev 1.4'],
    ['${NODE.serial}', '10000000a1b2c3d4'],
    ['${NODE.site}', 'attic'],
    ['${NODE.example.org/rack}', 'r2'],
    ['${NODE.kubernetes.io/arch}', 'arm64'],
    ['x-${NODE.name}-${NODE.name}-${NODE.site}.y', 'x-pi-07-pi-07-attic.y'],
    ['${NODE.empty}', ''],
    ['${NODE.odd}', '"\n${NODE.name}'],
    ['$${NODE.name}', '${NODE.name}'],
    ['$${NODE.unknown}', '${NODE.unknown}'],
    ['$${NODE.', '${NODE.'],
    ['$$${NODE.name}', '$${NODE.name}'],
    ['$${NODE.name}${NODE.name}', '${NODE.name}pi-07'],
    ['$ ${NODE.name}', '$ pi-07'],
    ['$$', '$$'],
    ['$(NODE.name) ${NODE} ${node.name} ${NODEname} {NODE.name}', '$(NODE.name) ${NODE} ${node.name} ${NODEname} {NODE.name}'],
    ['é${NODE.name}😀', 'épi-07😀'],
  ];
  for (const [written, expected] of table) assert.equal(text(written), expected, written);
});

test('what no node has is told with its path and the nearest name, and stays as it is', () => {
  const table: readonly (readonly [string, string | undefined, RegExp])[] = [
    ['${NODE.nmae}', '${NODE.name}', /^name, arch, model, serial or a label of the node$/],
    ['${NODE.Site}', '${NODE.site}', /label/],
    ['${NODE.example.org/rac}', '${NODE.example.org/rack}', /label/],
    ['${NODE.ip}', undefined, /fieldRef to status\.hostIP/],
    ['${NODE.hostIP}', undefined, /fieldRef to status\.hostIP/],
    ['${NODE.}', undefined, /label/],
    ['${NODE. name}', '${NODE.name}', /label/],
    ['${NODE.toString}', undefined, /label/],
    ['${NODE.__proto__}', undefined, /label/],
  ];
  for (const [written, nearest, expected] of table) {
    const { value, problems } = substituteNode({ spec: { list: ['ok', written] } }, node);
    const [problem] = problems;
    assert.deepEqual([problems.length, problem?.path, problem?.got, problem?.nearest], [1, 'spec.list[1]', written, nearest]);
    assert.match(problem?.expected ?? '', expected);
    assert.deepEqual(value, { spec: { list: ['ok', written] } });
  }
  const open = substituteNode({ a: 'x ${NODE.name and a secret' }, node).problems;
  assert.deepEqual(open, [{ path: 'a', expected: 'a } behind the name', got: '${NODE.…' }]);
});

test('a board that has no serial number to tell refuses what asks for one', () => {
  const { problems } = substituteNode({ a: '${NODE.serial}', b: '${NODE.model}' }, { name: 'vm', arch: 'amd64', labels: {} });
  assert.deepEqual(
    problems.map((p) => [p.path, p.expected]),
    [
      ['a', 'a node that has a serial number to tell'],
      ['b', 'a node that has a model to tell'],
    ],
  );
});

test('keys are never touched, other values stay what they are, and depth and lists are followed', () => {
  const raw = {
    '${NODE.name}': { '${NODE.bad}': 1 },
    n: 5,
    b: true,
    z: null,
    f: 1.5,
    deep: [[{ a: [{ b: '${NODE.name}' }, 7] }]],
    ['__proto__' as string]: 'x',
  };
  const { value, problems } = substituteNode(JSON.parse(JSON.stringify(raw)), node);
  assert.deepEqual(problems, []);
  assert.deepEqual(value, JSON.parse(JSON.stringify(raw).replace('"b":"${NODE.name}"', '"b":"pi-07"')));
  const own = substituteNode(JSON.parse('{"__proto__": {"a": "${NODE.name}"}}'), node).value as object;
  assert.deepEqual([Object.keys(own), JSON.stringify(own)], [['__proto__'], '{"__proto__":{"a":"pi-07"}}']);
});

test('what has no reference is the very same object, and its unchanged parts are too', () => {
  const same = { a: [1, { b: 'x $${ y' }] };
  assert.equal(substituteNode(same, node).value, same);
  const raw = { keep: { a: 'x' }, change: '${NODE.name}' };
  const changed = substituteNode(raw, node).value as typeof raw;
  assert.equal(changed.keep, raw.keep);
  assert.deepEqual(raw, { keep: { a: 'x' }, change: '${NODE.name}' });
});

test('base64 is no text: data of a Secret and binaryData stay, stringData and data of a ConfigMap do not; a status is nobody’s', () => {
  const of = (kind: string) => substituteNode({ kind, data: { a: '${NODE.name}' }, stringData: { a: '${NODE.name}' } }, node).value;
  assert.deepEqual(of('Secret'), { kind: 'Secret', data: { a: '${NODE.name}' }, stringData: { a: 'pi-07' } });
  assert.deepEqual(of('ConfigMap'), { kind: 'ConfigMap', data: { a: 'pi-07' }, stringData: { a: 'pi-07' } });
  const map = { kind: 'ConfigMap', binaryData: { a: '${NODE.bad}' }, status: { note: '${NODE.bad}' } };
  assert.deepEqual(substituteNode(map, node), { value: map, problems: [], doubts: [], places: new Set() });
});

test('a value that stands in several places, as an anchor makes it, is replaced in each', () => {
  const shared = { image: 'x:${NODE.arch}' };
  assert.deepEqual(substituteNode({ a: shared, b: [shared] }, node).value, { a: { image: 'x:arm64' }, b: [{ image: 'x:arm64' }] });
});

test('a text of a megabyte is done in no time, and one that would grow without measure is refused', () => {
  const ms = cpuMs(() => {
    const long = `${'x${NODE.name}'.repeat(10)}${'$'.repeat(500_000)}${'${NODE'.repeat(80_000)}`;
    assert.equal(substituteNode({ a: long }, node).problems.length, 0);
    assert.equal(substituteNode({ a: '${NODE.'.repeat(140_000) }, node).problems.length, 1);
  });
  assert.ok(ms < 3000, `${ms} ms`);
  const big: NodeValues = { name: 'x'.repeat(63), labels: {} };
  const { problems } = substituteNode({ a: '${NODE.name}'.repeat(80_000), b: '${NODE.name}' }, big);
  assert.deepEqual(problems, [{ path: 'a', expected: 'at most 1048576 characters put in', got: 'more' }]);
});

test('where no node is known each reference is a word that fits names, labels and images, and a likely slip is a doubt', () => {
  const raw = {
    name: 'web-${NODE.name}',
    image: 'x:${NODE.arch}',
    label: '${NODE.example.org/Rack_1}',
    slip: '${NODE.sreial}',
    address: '${NODE.ip}',
    escaped: '$${NODE.x}',
    wrong: '${NODE.a b}',
  };
  const { value, problems, doubts, places } = substituteNode(raw, undefined);
  assert.deepEqual(value, {
    name: 'web-name',
    image: 'x:arm64',
    label: 'example-org-rack-1',
    slip: 'sreial',
    address: 'ip',
    escaped: '${NODE.x}',
    wrong: '${NODE.a b}',
  });
  assert.deepEqual(
    problems.map((p) => p.path),
    ['wrong'],
  );
  assert.deepEqual(
    doubts.map((p) => [p.path, p.nearest]),
    [
      ['slip', '${NODE.serial}'],
      ['address', undefined],
    ],
  );
  assert.deepEqual([...places], ['name', 'image', 'label', 'slip', 'address', 'wrong']);
});
