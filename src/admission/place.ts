// pure
/**
 * Does this node fit what a pod says of its place: nodeSelector and the required node affinity. Mirrors the matching of kubelet v1.32
 * (component-helpers nodeaffinity): terms are alternatives, what stands inside one must all hold, and an empty term holds nowhere.
 */
import type { NodeSelectorRequirement, NodeSelectorTerm, PodSpec } from '../api/v1.ts';

export interface Place {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** True when nodeSelector and required node affinity let the pod run here. */
export function fitsPlace(spec: Pick<PodSpec, 'nodeSelector' | 'affinity'>, node: Place): boolean {
  const selected = Object.entries(spec.nodeSelector ?? {}).every(([key, value]) => labelOf(node, key) === value);
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return selected && (required === undefined || (required.nodeSelectorTerms ?? []).some((term) => fitsTerm(term, node)));
}

function fitsTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Place): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((r) => fitsRequirement(r, labelOf(node, r.key))) &&
    matchFields.every((r) => fitsRequirement(r, r.key === 'metadata.name' ? node.name : undefined))
  );
}

/** An absent label is not in any list: NotIn holds for it. */
function fitsRequirement({ operator, values = [] }: NodeSelectorRequirement, has: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return has !== undefined && values.includes(has);
    case 'NotIn':
      return has === undefined || !values.includes(has);
    case 'Exists':
      return has !== undefined;
    case 'DoesNotExist':
      return has === undefined;
    case 'Gt':
    case 'Lt': {
      const [mine, bound] = [wholeNumber(has), wholeNumber(values[0])];
      if (mine === undefined || bound === undefined) return false;
      return operator === 'Gt' ? mine > bound : mine < bound;
    }
  }
}

/** Whole numbers only, exactly, however long they are. */
const wholeNumber = (text: string | undefined): bigint | undefined =>
  text !== undefined && /^-?[0-9]{1,19}$/.test(text) ? BigInt(text) : undefined;

const labelOf = (node: Place, key: string): string | undefined => (Object.hasOwn(node.labels, key) ? node.labels[key] : undefined);
