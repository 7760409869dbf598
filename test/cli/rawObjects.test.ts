import assert from 'node:assert/strict';
import { test } from 'node:test';
import { annotationsOf, rawObject, rawObjects, signedPayload, withAnnotations } from '../../src/cli/rawObjects.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test('a text gives its objects in order, Lists taken apart, and nothing else', () => {
  const text = 'kind: Pod\n---\nkind: List\nitems:\n- kind: Secret\n- 7\n- kind: ConfigMap\n---\n---\n- a list\n';
  assert.deepEqual(
    rawObjects(bytes(text)).map((o) => o.kind),
    ['Pod', 'Secret', 'ConfigMap'],
  );
  assert.deepEqual(rawObjects(bytes('kind: List\nitems: 7\n')), [{ kind: 'List', items: 7 }]);
});

test('of a message that holds no object there is none', () => {
  for (const text of ['', '7', '[', '{"a"', '\u0000']) assert.equal(rawObject(bytes(text)), undefined, JSON.stringify(text));
  assert.deepEqual(rawObject(bytes('{"kind":"Pod"}')), { kind: 'Pod' });
});

test('an envelope is known by its three fields', () => {
  const envelope = { payloadType: 'any', payload: Buffer.from('{}').toString('base64'), signatures: [] };
  assert.equal(String(signedPayload(bytes(JSON.stringify(envelope)))), '{}');
  for (const name of ['payloadType', 'payload', 'signatures'] as const) {
    const { [name]: _, ...rest } = envelope;
    assert.equal(signedPayload(bytes(JSON.stringify(rest))), undefined, name);
  }
});

test('annotations are set beside the others and taken away, and what is no text is none', () => {
  const raw = { kind: 'Pod', metadata: { name: 'web', annotations: { a: '1', b: '2', n: 3 } } };
  assert.deepEqual(annotationsOf(raw), { a: '1', b: '2' });
  assert.deepEqual(annotationsOf(withAnnotations(raw, { a: '9', b: undefined, c: '3' })), { a: '9', c: '3' });
  assert.deepEqual(withAnnotations({ kind: 'Pod', metadata: { annotations: { a: '1' } } }, { a: undefined }), {
    kind: 'Pod',
    metadata: {},
  });
  for (const odd of [undefined, {}, { metadata: 7 }, { metadata: { annotations: ['a'] } }]) assert.deepEqual(annotationsOf(odd), {});
});
