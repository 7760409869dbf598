// pure
/** The port of an http or tcp handler: a number, the name of one of the container's ports, or a number written as text (facts 8.5). */
import type { Container } from '../api/v1.ts';

/** Throws when the name is no port of the container, or the number is not 1..65535. Mirrors kubelet v1.32 pkg/probe ResolveContainerPort. */
export function resolvePort(port: number | string, container: Pick<Container, 'name' | 'ports'>): number {
  const found = typeof port === 'number' ? port : (container.ports?.find((p) => p.name === port)?.containerPort ?? numeric(port));
  if (found === undefined) {
    const names = (container.ports ?? []).flatMap((p) => (p.name ? [p.name] : []));
    const known = names.length === 0 ? 'it names none' : `it has ${names.join(', ')}`;
    throw new Error(`container ${container.name} has no port named ${JSON.stringify(port)}: ${known}`);
  }
  if (!Number.isInteger(found) || found < 1 || found > 65535) throw new Error(`invalid port number: ${found}`);
  return found;
}

const numeric = (text: string): number | undefined => (/^[+-]?\d+$/.test(text) ? Number(text) : undefined);
