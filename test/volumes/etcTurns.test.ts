import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { EtcFiles } from '../../src/volumes/etcFiles.ts';
import { folder, pod } from './house.ts';

test('a container that starts while others come and go finds one text, not pieces of two', async () => {
  const root = folder();
  mkdirSync(join(root, 'uid-1'));
  const etc = new EtcFiles({
    dnsOf: () => ({ servers: [], searches: [], options: [] }),
    hostsFile: '/etc/hosts',
    clusterDomain: '',
    root: () => root,
  });
  const desired = pod({});
  const others = (n: number) =>
    Array.from({ length: n }, (_, i) => ({
      desired: pod({}, { uid: `uid-${i + 2}`, metadata: { name: `other-${i}` } }),
      ips: [`10.0.0.${i + 2}`],
    }));
  const linesOf = (text: string): string[] => text.split('\n').filter((l) => l.includes('other-'));
  const path = await etc.hosts(desired, ['10.0.0.1']);
  for (let round = 0; round < 150; round++) {
    const deeds: Promise<unknown>[] = [];
    const counts = [1, 40, 2, 30, (round % 20) + 1];
    for (const n of counts) {
      etc.setNeighbours(others(n));
      deeds.push(etc.hosts(desired, ['10.0.0.1']), etc.correctHosts({ desired, ips: ['10.0.0.1'] }));
    }
    await Promise.all(deeds);
    assert.equal(linesOf(readFileSync(path, 'utf8')).length, counts.at(-1), `round ${round}`);
  }
});

test('a text that a full card cut in two is set right when there is room, also when it is the old text again', async () => {
  const root = join(folder(), 'pods');
  mkdirSync(root);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40k', 'tmpfs', root]);
  mkdirSync(join(root, 'uid-1'));
  const servers = { now: ['192.0.2.1'] };
  const etc = new EtcFiles({
    dnsOf: () => ({ servers: servers.now, searches: [], options: [] }),
    hostsFile: '/etc/hosts',
    clusterDomain: '',
    root: () => root,
  });
  const desired = pod({});
  const path = await etc.resolv(desired);
  const right = readFileSync(path, 'utf8');
  try {
    for (;;) writeFileSync(join(root, 'big'), 'x'.repeat(4096), { flag: 'a' });
  } catch {
    // it is full
  }
  servers.now = Array.from({ length: 1000 }, (_, i) => `192.0.2.${(i % 250) + 2}`);
  await assert.rejects(etc.correctResolv(desired), /ENOSPC/);
  servers.now = ['192.0.2.1'];
  rmSync(join(root, 'big'));
  await etc.correctResolv(desired);
  assert.equal(readFileSync(path, 'utf8'), right);
});
