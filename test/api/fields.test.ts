import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fieldsOf, type Shape } from '../../src/api/fields.ts';
import { supportTable } from '../../src/api/support.ts';

const rows = readFileSync(new URL('../../bundle/pod-fields.tsv', import.meta.url), 'utf8')
  .split('\n')
  .slice(1)
  .filter((line) => line !== '' && !line.startsWith('enum '))
  .map((line) => line.split('\t'));

test('the generated table has every field of the source table', () => {
  for (const [type = '', field = ''] of rows) {
    // bookkeeping types that nothing reaches except inline are spread into their users
    if (field === '(inline)' || fieldsOf(type).size === 0) continue;
    assert.ok(fieldsOf(type).has(field), `${type}.${field}`);
  }
  assert.ok(fieldsOf('Volume').has('emptyDir'));
  assert.ok(fieldsOf('Probe').has('httpGet'));
  assert.deepEqual(fieldsOf('Container').get('image'), { name: 'image', shape: { kind: 'string' }, required: true, pointer: false });
  assert.equal(fieldsOf('PodSpec').get('shareProcessNamespace')?.pointer, true);
});

test('every place of the support table is a field that exists', () => {
  const child = (shape: Shape, step: string): Shape | undefined => {
    if (step === '[]' && shape.kind === 'list') return shape.of;
    if (step.startsWith('[') && shape.kind === 'map') return shape.of;
    return shape.kind === 'struct' ? fieldsOf(shape.type).get(step)?.shape : undefined;
  };
  for (const place of supportTable.keys()) {
    const steps = place.match(/\[[^\]]*\]|[^.[\]]+/g) ?? [];
    const found = ['Pod', 'ConfigMap', 'Secret'].some(
      (type) => steps.reduce<Shape | undefined>((shape, step) => shape && child(shape, step), { kind: 'struct', type }) !== undefined,
    );
    assert.ok(found, place);
  }
});
