import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeObject } from '../../src/node/info.ts';
import { describeNode } from '../../src/operations/describeNode.ts';
import { nodeRow } from '../../src/operations/nodeRow.ts';
import { event, nowMs, told } from './view.ts';

const condition = (type: string, status: 'True' | 'False', reason: string, message: string) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:30:00Z',
  lastHeartbeatTime: '2026-01-01T01:00:00Z',
});

const node: NodeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'pi-07',
    labels: { 'kubernetes.io/hostname': 'pi-07', site: 'attic' },
    annotations: {
      'podsched.dev/model': 'Raspberry Pi 4 Model B Rev 1.4',
      'podsched.dev/cpu-temperature': '52.6',
      'podsched.dev/power': 'under-voltage now',
      'podsched.dev/uptime-seconds': '86461',
      'podsched.dev/page-size': '4096',
      'example.org/room': 'b',
    },
  },
  status: {
    capacity: { cpu: '4', memory: '1Gi', pods: '110' },
    allocatable: { cpu: '4', memory: '1000Mi', pods: '110' },
    addresses: [
      { type: 'InternalIP', address: '192.0.2.7' },
      { type: 'Hostname', address: 'pi-07' },
    ],
    conditions: [
      condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
      condition('Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'),
      condition('UnderVoltage', 'True', 'UnderVoltage', 'the supply\nis weak'),
    ],
    nodeInfo: {
      machineID: 'aaaabbbbcccc',
      kernelVersion: '6.12.20',
      kubeletVersion: 'podsched 0.1.0',
      architecture: 'arm64',
      osImage: 'Debian',
    },
  },
};

const withRequests = told('web', {
  spec: {
    containers: [
      { name: 'app', image: 'img', resources: { requests: { cpu: '500m', memory: '100Mi' }, limits: { memory: '200Mi' } } },
      { name: 'side', image: 'img', resources: { limits: { cpu: '1', memory: '100Mi' }, requests: { cpu: '1', memory: '100Mi' } } },
    ],
  },
});

test('a node is described as kubectl describes one, with its board', () => {
  const gone = told('old', { status: { phase: 'Succeeded' } });
  const events = [event('pi-07', 'UnderVoltage', 'the supply is weak', { type: 'Warning' })];
  const text = describeNode({ node, pods: [withRequests, gone], events, nowMs });
  for (const line of [
    /^Name: {9}pi-07$/m,
    /^Labels: {7}kubernetes\.io\/hostname=pi-07\n {14}site=attic$/m,
    /^Annotations: {2}example\.org\/room=b$/m,
    /^Status: {7}Ready, and: UnderVoltage$/m,
    /^Addresses:\n {2}InternalIP: {2}192\.0\.2\.7\n {2}Hostname: {4}pi-07$/m,
    /^Capacity:\n {2}cpu: {5}4\n {2}memory: {2}1Gi\n {2}pods: {4}110$/m,
    /^Allocatable:\n {2}cpu: {5}4\n {2}memory: {2}1000Mi$/m,
    /^Board:\n {2}Model: +Raspberry Pi 4 Model B Rev 1\.4\n {2}CPU Temperature: +52\.6 °C\n {2}Power: +under-voltage now\n {2}Page Size: +4096\n {2}Uptime: +24h$/m,
    /^ {2}Agent Version: +podsched 0\.1\.0$/m,
    /^Conditions:\n {2}Type +Status +Since +Reason +Message\n {2}MemoryPressure +False +30m +KubeletHasSufficientMemory {2}kubelet has/m,
    /^ {2}UnderVoltage +True +30m +UnderVoltage +the supply is weak$/m,
    /^Pods \(1 of 110\):\n {2}Namespace +Name +CPU Requests +CPU Limits +Memory Requests +Memory Limits +Age\n {2}default +web +1500m \(37%\) +1000m \(25%\) +200Mi \(20%\) +300Mi \(30%\) +60m$/m,
    /^Allocated resources:\n {2}Resource +Requests +Limits\n {2}cpu +1500m \(37%\) +1000m \(25%\)\n {2}memory +200Mi \(20%\) +300Mi \(30%\)$/m,
    /^ {2}Warning {2}UnderVoltage/m,
  ]) {
    assert.match(text, line);
  }
});

test('a node that tells little is described by what it tells', () => {
  const bare: NodeObject = { ...node, metadata: { name: 'x', labels: {} }, status: { addresses: [], conditions: [], nodeInfo: {} } };
  const text = describeNode({ node: bare, pods: [], events: [], nowMs });
  assert.match(text, /^Status: {7}Unknown$/m);
  assert.match(text, /^Conditions: {2}<none>$/m);
  assert.match(text, /^Pods \(0 of \?\): {2}<none>$/m);
  assert.match(text, /^ {2}cpu +0m +0m$/m);
  assert.doesNotMatch(text, /NaN|undefined/);
});

test('in one row it is Ready or not, with how long it runs and what is wrong', () => {
  const row = nodeRow(node);
  assert.deepEqual([row.name, row.status, row.uptime, row.version, row.problems], ['pi-07', 'Ready', '24h', '0.1.0', 'UnderVoltage']);
  assert.deepEqual([row.ip, row.kernel, row.runtime, row.temperature], ['192.0.2.7', '6.12.20', '<none>', '52.6 °C']);
  const down = { ...node, status: { ...node.status, conditions: [condition('Ready', 'False', 'KubeletNotReady', 'x')] } };
  assert.deepEqual([nodeRow(down).status, nodeRow(down).problems], ['NotReady', '<none>']);
});
