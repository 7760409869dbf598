/** Calls of containerd's own image service, as they go over the wire. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { CriClient } from '../../src/cri/client.ts';
import { UpdateImageRequestSchema } from '../../src/cri/gen/containerd_images_pb.ts';
import { CriImages } from '../../src/cri/images.ts';

test('a label is written with a mask, and with a target: containerd 1.7 crashes where the image has none', async () => {
  const asked: unknown[] = [];
  const call = async (_method: unknown, request: unknown) => {
    asked.push(request);
    return {};
  };
  const images = new CriImages({ call } as unknown as CriClient, { list: 1, act: 1, pull: 1 });
  await images.labelImage('localhost/web:1', { 'io.cri-containerd.pinned': 'pinned' });
  const [request] = asked as [Parameters<typeof create<typeof UpdateImageRequestSchema>>[1]];
  const wire = toBinary(UpdateImageRequestSchema, create(UpdateImageRequestSchema, request));
  const { image, updateMask } = fromBinary(UpdateImageRequestSchema, wire);
  assert.deepEqual(updateMask?.paths, ['labels.io.cri-containerd.pinned']);
  assert.equal(image?.name, 'localhost/web:1');
  assert.notEqual(image.target, undefined);
  assert.equal(image.target?.digest, '');
});
