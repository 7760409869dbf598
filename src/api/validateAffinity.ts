// pure
/**
 * Validation of what a pod says of its place (kubelet v1.32 ValidateNodeSelector, ValidateLabels). podsched's own: a bound of Gt or Lt is a whole
 * number, since the kubelet takes any text and then never lets the pod in.
 */
import { entryPath, itemPath } from './fieldPath.ts';
import { wrongLabelValue, wrongQualifiedName } from './names.ts';
import type { Problem } from './objects.ts';
import { problemIf } from './problems.ts';
import { shown } from './scalars.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm, PodSpec } from './v1.ts';

/** Every mistake of nodeSelector and of the required node affinity. */
export function validateAffinity(spec: Partial<PodSpec>): Problem[] {
  const problems: Problem[] = [];
  for (const [key, value] of Object.entries(spec.nodeSelector ?? {})) {
    const path = entryPath('spec.nodeSelector', key);
    problems.push(...problemIf(wrongQualifiedName(key), path, key), ...problemIf(wrongLabelValue(value), path, value));
  }
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (terms === undefined) return problems; // a missing list was told already
  const at = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
  if (terms.length === 0) problems.push({ path: at, expected: 'at least one term', got: 'none' });
  terms.forEach((term, i) => {
    problems.push(...validateTerm(term, itemPath(at, i)));
  });
  return problems;
}

function validateTerm({ matchExpressions = [], matchFields = [] }: Partial<NodeSelectorTerm>, at: string): Problem[] {
  return [
    ...matchExpressions.flatMap((r, i) => validateExpression(r, itemPath(`${at}.matchExpressions`, i))),
    ...matchFields.flatMap((r, i) => validateField(r, itemPath(`${at}.matchFields`, i))),
  ];
}

function validateExpression({ key, operator, values = [] }: Partial<NodeSelectorRequirement>, at: string): Problem[] {
  const problems = key === undefined ? [] : problemIf(wrongQualifiedName(key), `${at}.key`, key);
  const wrong = (expected: string): Problem => ({ path: `${at}.values`, expected, got: counted(values) });
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) problems.push(wrong(`at least one, since operator is ${operator}`));
      values.forEach((value, i) => {
        problems.push(...problemIf(wrongLabelValue(value), itemPath(`${at}.values`, i), value));
      });
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) problems.push(wrong(`absent, since operator is ${operator}`));
      break;
    case 'Gt':
    case 'Lt':
      if (values.length !== 1) problems.push(wrong(`exactly one, since operator is ${operator}`));
      else if (!/^-?[0-9]{1,19}$/.test(values[0] ?? ''))
        problems.push({ path: itemPath(`${at}.values`, 0), expected: 'a whole number, quoted', got: shown(values[0]) });
      break;
    case undefined: // told already
  }
  return problems;
}

/** A node has one field to go by, its name. Which operators there are stands in the support table. */
function validateField({ key, values = [] }: Partial<NodeSelectorRequirement>, at: string): Problem[] {
  const problems: Problem[] = [];
  if (key !== undefined && key !== 'metadata.name') problems.push({ path: `${at}.key`, expected: 'metadata.name', got: shown(key) });
  if (values.length !== 1) problems.push({ path: `${at}.values`, expected: 'exactly one name', got: counted(values) });
  return problems;
}

const counted = (values: readonly string[]): string => (values.length === 0 ? 'none' : String(values.length));
