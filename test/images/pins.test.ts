import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podImages } from '../../src/api/podImages.ts';
import type { Pod } from '../../src/api/v1.ts';
import type { ImageInfo } from '../../src/container/runtime.ts';
import { fullName } from '../../src/images/fullName.ts';
import { type PinReason, pinsOf } from '../../src/images/pins.ts';
import { sizeText } from '../../src/images/sizeText.ts';

const hex = (c: string): string => c.repeat(64);
const digest = `sha256:${hex('d')}`;

test('the many spellings of a name are one', () => {
  for (const [text, name] of [
    ['busybox', 'docker.io/library/busybox:latest'],
    ['busybox:1', 'docker.io/library/busybox:1'],
    ['library/busybox:1', 'docker.io/library/busybox:1'],
    ['docker.io/busybox:1', 'docker.io/library/busybox:1'],
    ['docker.io/library/busybox:1', 'docker.io/library/busybox:1'],
    ['index.docker.io/library/busybox:1', 'docker.io/library/busybox:1'],
    ['index.docker.io/busybox', 'docker.io/library/busybox:latest'],
    ['grafana/grafana', 'docker.io/grafana/grafana:latest'],
    ['r.example/x', 'r.example/x:latest'],
    ['r.example:5000/a/b/c:2', 'r.example:5000/a/b/c:2'],
    ['localhost/x:1', 'localhost/x:1'],
    ['localhost:5000/x', 'localhost:5000/x:latest'],
    [`busybox@${digest}`, `docker.io/library/busybox@${digest}`],
    [`busybox:1@${digest}`, `docker.io/library/busybox@${digest}`],
    [`r.example:5000/x:1@${digest}`, `r.example:5000/x@${digest}`],
    [digest, digest],
    [hex('d'), digest],
    ['Busybox', undefined],
    ['', undefined],
    ['a b', undefined],
  ] as const) {
    assert.equal(fullName(text), name, text);
  }
});

const image = (c: string, o: Partial<ImageInfo> = {}): ImageInfo => ({
  id: `sha256:${hex(c)}`,
  tags: [],
  digests: [],
  pinned: false,
  username: '',
  ...o,
});
const a = image('a', { tags: ['docker.io/library/app:1'], digests: [`docker.io/library/app@${digest}`] });

test('a name pins by tag, by digest and by id, however it is written', () => {
  const rows: readonly (readonly [string, Partial<Parameters<typeof pinsOf>[1]>, readonly PinReason[]])[] = [
    ['nobody names it', {}, []],
    ['a pod, short', { known: ['app:1'] }, ['pod']],
    ['a pod, complete', { known: ['docker.io/library/app:1'] }, ['pod']],
    ['a pod, another tag', { known: ['app:2'] }, []],
    ['a pod, no tag', { known: ['app'] }, []],
    ['a pod, by digest', { known: [`app@${digest}`] }, ['pod']],
    ['a pod, by tag and digest', { known: [`app:1@${digest}`] }, ['pod']],
    ['a pod, by tag and another digest', { known: [`app:1@sha256:${hex('e')}`] }, []],
    ['a pod, by id', { known: [a.id] }, ['pod']],
    ['a pod, by id in digits only', { known: [hex('a')] }, ['pod']],
    ['a text that names nothing', { known: ['App::', ''] }, []],
    ['two pods are one reason', { known: ['app:1', a.id] }, ['pod']],
    ['imported', { imported: ['docker.io/library/app:1'] }, ['imported']],
    ['the sandbox image', { sandboxImage: 'app:1' }, ['sandbox']],
    ['all at once', { sandboxImage: 'app:1', known: ['app:1'], imported: ['app:1'] }, ['sandbox', 'pod', 'imported']],
  ];
  for (const [what, sources, reasons] of rows) {
    const pins = pinsOf([a, image('b')], { sandboxImage: 'other:1', known: [], imported: [], ...sources });
    assert.deepEqual(pins.get(a.id) ?? [], reasons, what);
    assert.equal(pins.has(image('b').id), false, what);
  }
});

test('any of its names pins an image', () => {
  const many = image('c', { tags: ['r.example/x:1', 'r.example/x:latest', 'docker.io/library/y:1'] });
  for (const text of ['r.example/x:1', 'r.example/x', 'y:1'])
    assert.deepEqual(pinsOf([many], { sandboxImage: 'p:1', known: [text], imported: [] }).get(many.id), ['pod'], text);
});

test('the runtime’s own pin holds', () => {
  const pause = image('p', { id: `sha256:${hex('9')}`, tags: ['registry.k8s.io/pause:3.8'], pinned: true });
  assert.deepEqual(pinsOf([pause], { sandboxImage: undefined, known: [], imported: [] }).get(pause.id), ['runtime', 'sandbox']);
});

test('where the runtime does not tell its sandbox image, what is called pause is taken for it', () => {
  for (const [name, is] of [
    ['registry.k8s.io/pause:3.8', true],
    ['rancher/mirrored-pause:3.6', true],
    ['docker.io/podsched/pause:1', true],
    ['docker.io/library/pausenbrot:1', true],
    ['r.example/pause/web:1', false],
    ['docker.io/library/web:pause', false],
  ] as const) {
    const one = image('e', { tags: [name] });
    assert.equal(pinsOf([one], { sandboxImage: undefined, known: [], imported: [] }).has(one.id), is, name);
    assert.equal(pinsOf([one], { sandboxImage: 'other:1', known: [], imported: [] }).has(one.id), false, name);
  }
});

test('a pod names the images of its containers of every kind, and of its image volumes', () => {
  const spec: Pod['spec'] = {
    initContainers: [{ name: 'i', image: 'init:1' }],
    containers: [
      { name: 'a', image: 'app:1' },
      { name: 'b', image: 'app:1' },
    ],
    ephemeralContainers: [{ name: 'e', image: 'debug:1' }],
    volumes: [
      { name: 'v', image: { reference: 'data:1' } },
      { name: 'w', image: {} },
      { name: 'x', emptyDir: {} },
    ],
  };
  assert.deepEqual(podImages({ spec }), ['init:1', 'app:1', 'debug:1', 'data:1']);
});

test('sizes have three digits', () => {
  for (const [bytes, text] of [
    [0, '0B'],
    [999, '999B'],
    [1000, '1kB'],
    [4_266_000, '4.27MB'],
    [999_600, '1MB'],
    [312_400_000, '312MB'],
    [1_250_000_000, '1.25GB'],
    [-5, '0B'],
  ] as const) {
    assert.equal(sizeText(bytes), text);
  }
});
