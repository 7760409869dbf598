/**
 * What we send to the runtime equals what kubelet 1.32 sent for the same manifest, field by field, but for the allowed differences. Without a
 * runtime: what volumes, hooks and probes add to it is compared in test/device/conformance.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import { containerConfigMessage, sandboxConfigMessage } from '../../src/cri/convert.ts';
import { ContainerConfigSchema, PodSandboxConfigSchema } from '../../src/cri/gen/cri_pb.ts';
import { containerConfig, sandboxConfig } from '../../src/kuberuntime/configs.ts';
import { rules, type Side } from '../device/conformanceAllowed.ts';
import { isFields, normalContainer, recordedMachine } from '../device/conformanceNormal.ts';
import { type Fields, readCases } from '../device/conformanceRecordings.ts';
import { words } from '../device/criRecorder.ts';
import { differences, type Json } from './kubelet-1.32/recording.ts';

/** Volumes, /etc/hosts and the termination log come from folders of the pod, which no config makes. */
function withoutMounts(config: Fields): Fields {
  const copy = normalContainer(config, {}, recordedMachine);
  delete copy.mounts;
  return copy;
}

const fields = (value: Json): Fields => {
  assert.ok(isFields(value));
  return value;
};

for (const of of readCases()) {
  const { recording } = of;
  if (recording === undefined || recording.sandbox === null) continue;
  const desired = toDesiredPod(of.pod, {
    uid: '<uid>' as PodUid,
    source: `file:${of.manifest}`,
    nodeName: '<node>',
    firstSeen: '<time>',
  });
  const nothing = { sequence: { start: [], edit: [], delete: [], exec: [] }, metadata: {}, spec: {}, status: {}, events: {} };
  const side = (sandbox: Json, containers: { [name: string]: Json }): Side => ({ ...structuredClone(nothing), sandbox, containers });

  const sandbox = sandboxConfig(desired, {
    attempt: 0,
    nodeName: '<node>',
    podLogsDir: '/var/log/pods',
    started: 'boot/1',
    cgroupDriver: 'cgroupfs',
    hostDns: { servers: ['<host-dns>'], searches: [], options: [] },
  });
  const { containers, initContainers = [] } = desired.pod.spec;
  const configs = [...initContainers, ...containers]
    .filter((c) => c.name in recording.containers)
    .map((spec) => {
      const config = containerConfig(desired, spec, {
        attempt: 0,
        image: { id: 'sha256:<digest>', username: '' },
        nodeName: '<node>',
        nodeMemoryBytes: recordedMachine.memoryBytes,
        thermalThrottlePaths: recordedMachine.thermalThrottlePaths,
        hugepageSizes: recordedMachine.hugepageSizes,
        // recorded on cgroup v1
        countsSwap: true,
      });
      return [
        spec.name,
        withoutMounts(fields(words(ContainerConfigSchema, create(ContainerConfigSchema, containerConfigMessage(config))))),
      ];
    });
  const ours = side(
    words(PodSandboxConfigSchema, create(PodSandboxConfigSchema, sandboxConfigMessage(sandbox))),
    Object.fromEntries(configs),
  );
  const recorded = Object.entries(recording.containers).map(([name, config]) => [name, withoutMounts(config)]);
  const theirs = side(structuredClone(recording.sandbox), Object.fromEntries(recorded));
  for (const rule of rules) rule.apply({ of, ours, theirs, ending: [], unified: false });

  test(`${of.manifest}: the sandbox is asked for as the kubelet asks`, () => {
    assert.deepEqual(differences(ours.sandbox, theirs.sandbox), []);
  });
  for (const name of Object.keys(recording.containers)) {
    test(`${of.manifest}: container ${name} is asked for as the kubelet asks`, () => {
      assert.deepEqual(differences(ours.containers[name], theirs.containers[name]), []);
    });
  }
}
