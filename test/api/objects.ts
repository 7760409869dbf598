/** Raw objects for the tests of this room, as YAML or JSON would give them. */
import assert from 'node:assert/strict';
import { type Decoded, decodeObject } from '../../src/api/decode.ts';
import type { Problem } from '../../src/api/objects.ts';
import type { Pod } from '../../src/api/v1.ts';

export type Raw = Readonly<Record<string, unknown>>;

/** A pod of one container `app`; `spec` and `container` are laid over it. */
export const rawPod = (spec: Raw = {}, container: Raw = {}, metadata: Raw = {}): Raw => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', ...metadata },
  spec: { containers: [{ name: 'app', image: 'busybox:1', ...container }], ...spec },
});

export const decode = (raw: unknown, strict = false): Decoded => decodeObject(raw, { strict });

/** The pod of a raw object that must be right. */
export function pod(raw: unknown): Pod {
  const { object, problems } = decode(raw);
  assert.deepEqual(problems, []);
  assert.equal(object?.kind, 'Pod');
  return object as Pod;
}

/** `path: expected` of each. */
export const told = (problems: readonly Problem[]): string[] => problems.map((p) => `${p.path}: ${p.expected}`);
export const paths = (problems: readonly Problem[]): string[] => problems.map((p) => p.path);

/** Exactly one problem, at this path. */
export function only(decoded: Decoded, path: string): Problem {
  assert.deepEqual(paths(decoded.problems), [path]);
  const [problem] = decoded.problems;
  assert.ok(problem);
  assert.equal(decoded.object, undefined);
  return problem;
}
