/** Node selector and required node affinity, operator by operator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitsPlace } from '../../src/admission/place.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../../src/api/v1.ts';
import { node } from './build.ts';

const terms = (...nodeSelectorTerms: readonly NodeSelectorTerm[]) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const label = (key: string, operator: NodeSelectorRequirement['operator'], ...values: readonly string[]): NodeSelectorRequirement => ({
  key,
  operator,
  ...(values.length > 0 && { values }),
});
const one = (...args: Parameters<typeof label>) => terms({ matchExpressions: [label(...args)] });
const field = (...args: Parameters<typeof label>) => terms({ matchFields: [label(...args)] });

const table: readonly (readonly [what: string, spec: Parameters<typeof fitsPlace>[0], fits: boolean])[] = [
  ['nothing said', {}, true],
  ['a label that is there', { nodeSelector: { site: 'attic' } }, true],
  ['another value', { nodeSelector: { site: 'cellar' } }, false],
  ['a label that is not there', { nodeSelector: { disktype: 'nvme' } }, false],
  ['all labels must match', { nodeSelector: { site: 'attic', disktype: 'nvme' } }, false],
  ['an empty value is a value', { nodeSelector: { disktype: '' } }, false],
  ['the usual labels', { nodeSelector: { 'kubernetes.io/hostname': 'pi-07', 'kubernetes.io/arch': 'arm64' } }, true],
  ['another architecture', { nodeSelector: { 'kubernetes.io/arch': 'amd64' } }, false],
  ['a key that every object has', { nodeSelector: { toString: 'x' } }, false],
  ['In with it', one('site', 'In', 'cellar', 'attic'), true],
  ['In without it', one('site', 'In', 'cellar'), false],
  ['In of an absent label', one('disktype', 'In', 'nvme'), false],
  ['NotIn with it', one('site', 'NotIn', 'attic'), false],
  ['NotIn without it', one('site', 'NotIn', 'cellar'), true],
  ['NotIn of an absent label', one('disktype', 'NotIn', 'nvme'), true],
  ['Exists', one('site', 'Exists'), true],
  ['Exists of an absent label', one('disktype', 'Exists'), false],
  ['DoesNotExist', one('site', 'DoesNotExist'), false],
  ['DoesNotExist of an absent label', one('disktype', 'DoesNotExist'), true],
  ['Gt below', one('cores', 'Gt', '3'), true],
  ['Gt equal', one('cores', 'Gt', '4'), false],
  ['Gt compares numbers, not texts', one('cores', 'Gt', '10'), false],
  ['Lt above', one('cores', 'Lt', '5'), true],
  ['Lt equal', one('cores', 'Lt', '4'), false],
  ['Lt of a negative bound', one('cores', 'Lt', '-1'), false],
  ['Gt of an absent label', one('disktype', 'Gt', '0'), false],
  ['Gt of a text', one('site', 'Gt', '0'), false],
  ['the name of the node', field('metadata.name', 'In', 'pi-07'), true],
  ['another name', field('metadata.name', 'In', 'pi-08'), false],
  ['not another name', field('metadata.name', 'NotIn', 'pi-08'), true],
  ['not this name', field('metadata.name', 'NotIn', 'pi-07'), false],
  ['all of one term', terms({ matchExpressions: [label('site', 'Exists'), label('disktype', 'Exists')] }), false],
  [
    'fields beside labels',
    terms({ matchExpressions: [label('site', 'Exists')], matchFields: [label('metadata.name', 'In', 'pi-08')] }),
    false,
  ],
  ['one term of many', terms({ matchExpressions: [label('disktype', 'Exists')] }, { matchExpressions: [label('site', 'Exists')] }), true],
  ['an empty term holds nowhere', terms({}), false],
  ['no term holds nowhere', terms(), false],
  ['selector and affinity', { nodeSelector: { site: 'cellar' }, ...one('site', 'Exists') }, false],
];

for (const [what, spec, fits] of table) {
  test(`${what}: ${fits ? 'fits' : 'does not fit'}`, () => {
    assert.equal(fitsPlace(spec, node()), fits);
  });
}
