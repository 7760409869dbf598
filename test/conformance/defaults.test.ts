/** Decoding and defaulting against what kubelet v1.32 made of the same manifests. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeObject } from '../../src/api/decode.ts';
import { defaultPod } from '../../src/api/defaults.ts';
import type { Pod } from '../../src/api/v1.ts';

interface Case {
  readonly name: string;
  readonly manifest: unknown;
  readonly spec: unknown;
}
const { cases } = JSON.parse(readFileSync(new URL('./defaults.json', import.meta.url), 'utf8')) as { cases: readonly Case[] };

for (const c of cases) {
  test(`${c.name}: decoded and defaulted, the spec is the kubelet's`, () => {
    const { object, problems, warnings } = decodeObject(c.manifest, { strict: true });
    assert.deepEqual(problems, []);
    assert.deepEqual(warnings, []);
    const pod = defaultPod(object as Pod, '<node>');
    assert.deepEqual(pod.spec, c.spec);
    assert.deepEqual(defaultPod(pod, '<node>'), pod);
  });
}
