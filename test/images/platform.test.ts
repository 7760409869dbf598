import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ImagePlatform } from '../../src/container/runtime.ts';
import { kernelPlatform } from '../../src/images/kernelPlatform.ts';
import { type NodePlatform, platformProblem } from '../../src/images/platform.ts';

const platform = (text: string): ImagePlatform => {
  const [architecture = '', variant] = text.split('/');
  return { os: 'linux', architecture, ...(variant && { variant }) };
};

/** Image, node, what the kernel can besides, and what is wrong. */
const cases: readonly [string, string, Partial<NodePlatform>, string | undefined][] = [
  ['arm64', 'arm64', {}, undefined],
  ['arm64/v8', 'arm64', {}, undefined],
  ['amd64', 'arm64', {}, 'image amd64, node arm64'],
  ['arm64', 'amd64', {}, 'image arm64, node amd64'],
  ['arm64', 'arm/v7', {}, 'image arm64, node arm/v7'],
  ['arm/v7', 'arm64', {}, 'image arm/v7, node arm64'],
  ['arm/v7', 'arm64', { runs32bit: () => true }, undefined],
  ['arm/v6', 'arm64', { runs32bit: () => true }, undefined],
  ['arm', 'arm64', { runs32bit: () => false }, 'image arm, node arm64'],
  ['386', 'amd64', { runs32bit: () => true }, undefined],
  ['386', 'arm64', { runs32bit: () => true }, 'image 386, node arm64'],
  ['arm/v6', 'arm/v7', {}, undefined],
  ['arm/v7', 'arm/v7', {}, undefined],
  ['arm/v7', 'arm/v6', {}, 'image arm/v7, node arm/v6'],
  ['arm', 'arm/v6', {}, undefined],
  ['arm/v7', 'arm', {}, undefined],
  ['amd64', 'arm64', { emulates: (a) => a === 'amd64' }, undefined],
  ['riscv64', 'arm64', { emulates: (a) => a === 'amd64' }, 'image riscv64, node arm64'],
];

for (const [image, node, can, problem] of cases) {
  const more = can.runs32bit?.() === true ? ' with 32 bit' : can.emulates ? ' with an emulator for amd64' : '';
  test(`platform: image ${image} on ${node}${more} → ${problem ?? 'runs'}`, () => {
    assert.equal(platformProblem(platform(image), { ...platform(node), ...can }), problem);
  });
}

test('another system is named with it; what is not known is allowed', () => {
  const windows = { os: 'windows', architecture: 'amd64' };
  assert.equal(platformProblem(windows, platform('amd64')), 'image windows/amd64, node linux/amd64');
  assert.equal(platformProblem(undefined, platform('amd64')), undefined);
  assert.equal(platformProblem(windows, undefined), undefined);
});

async function withProc(step: (proc: string, put: (file: string, text: string) => void) => void): Promise<void> {
  const proc = mkdtempSync(join(tmpdir(), 'podsched-proc-'));
  try {
    for (const dir of ['sys/abi', 'sys/fs/binfmt_misc']) mkdirSync(join(proc, dir), { recursive: true });
    step(proc, (file, text) => writeFileSync(join(proc, file), text));
  } finally {
    rmSync(proc, { recursive: true, force: true });
  }
}

test('the kernel counts, not what the agent was built for', () => {
  const of = (machine: string, agent: string, starts32bit = () => false) => {
    const p = kernelPlatform({ machine, agent, proc: '/nowhere', starts32bit });
    return p && [p.architecture, p.variant, p.runs32bit?.()];
  };
  assert.deepEqual(of('x86_64', 'x64'), ['amd64', undefined, false]);
  assert.deepEqual(of('aarch64', 'arm64'), ['arm64', undefined, false]);
  assert.deepEqual(
    of('aarch64', 'arm64', () => true),
    ['arm64', undefined, true],
  );
  assert.deepEqual(of('aarch64', 'arm'), ['arm64', undefined, true], 'a 32-bit agent is the proof');
  assert.deepEqual(of('armv6l', 'arm'), ['arm', 'v6', true]);
  assert.equal(of('vax', 'x64'), undefined);
  assert.notEqual(kernelPlatform(), undefined, 'this machine is known');
});

test('an emulator counts when it is registered, on, and opened beforehand', () =>
  withProc((proc, put) => {
    const node = kernelPlatform({ machine: 'aarch64', agent: 'arm64', proc });
    const emulates = () => node?.emulates?.('amd64');
    assert.equal(emulates(), false);
    put('sys/fs/binfmt_misc/status', 'enabled\n');
    put('sys/fs/binfmt_misc/qemu-x86_64', 'enabled\ninterpreter /usr/bin/qemu-x86_64-static\nflags: OCF\noffset 0\n');
    assert.equal(emulates(), true);
    assert.equal(node?.emulates?.('../../status'), false);
    put('sys/fs/binfmt_misc/qemu-x86_64', 'enabled\ninterpreter /usr/bin/qemu-x86_64-static\nflags: OC\n');
    assert.equal(emulates(), false, 'it would have to be in the image');
    put('sys/fs/binfmt_misc/qemu-x86_64', 'disabled\nflags: F\n');
    assert.equal(emulates(), false);
  }));

test('a PC kernel with 32-bit programs says so', () =>
  withProc((proc, put) => {
    put('sys/abi/vsyscall32', '1\n');
    assert.equal(kernelPlatform({ machine: 'x86_64', agent: 'x64', proc })?.runs32bit?.(), true);
  }));
