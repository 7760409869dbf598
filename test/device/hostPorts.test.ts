/** Ports of the host on a real containerd: who is first has them, who waits is told for whom, and has them when they are free. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, describe, test } from 'node:test';
import type { SyncStatus } from '../../src/api/payloads.ts';
import type { ToldPod } from '../../src/api/status.ts';
import { type Lab, startLab } from './lab.ts';
import { container, type Fields, manifest, type PodText, pod, serve } from './manifest.ts';
import { freePort, sleep, until } from './process.ts';
import { agreed, footprint, toldPod, toldSync } from './truth.ts';

let lab: Lab;
before(async () => {
  lab = await startLab('ports');
});
after(() => lab.stop());

const drop = (of: PodText, file = `${of.metadata.name}.yaml`): string => {
  lab.agent.drop(file, manifest(of));
  return of.metadata.name;
};
const runs = (p: ToldPod): boolean => p.status.phase === 'Running' && p.status.containerStatuses?.every((c) => c.ready) === true;
const onPort = (hostPort: number, more: Fields = {}, command: readonly string[] = serve) =>
  container('main', command, { ports: [{ containerPort: 8080, hostPort, ...more }] });
const httpd = (text: string): string[] => [
  'sh',
  '-c',
  `mkdir /www; echo ${text} >/www/index.html; httpd -p 8080 -h /www; trap 'exit 0' TERM; sleep 2147483647 & wait`,
];
const address = (): string => {
  const found = Object.values(networkInterfaces())
    .flat()
    .find((a) => a?.family === 'IPv4' && !a.internal);
  assert.ok(found, 'the machine has an address');
  return found.address;
};
const answerOf = async (port: number): Promise<string> => {
  const answer = await fetch(`http://${address()}:${port}/`, { signal: AbortSignal.timeout(2_000) }).catch((e) => String(e));
  return typeof answer === 'string' ? answer : (await answer.text()).trim();
};
/** A server listens a moment after its container is told running. */
const says = async (port: number, text: string): Promise<void> => {
  let last = '';
  await until(`${text} to answer on ${port}`, 45_000, async () => {
    last = await answerOf(port);
    return last === text;
  }).catch(() => assert.equal(last, text));
};
const refused = async (name: string, words: RegExp): Promise<ToldPod> => {
  await lab.watcher
    .untilAll(`${name} refused`, () => {
      const [p, s] = [toldPod(lab, name), toldSync(lab, name)];
      return p?.status.reason === 'NodePorts' && s?.reason === 'NodePorts' && words.test(p.status.message ?? '');
    })
    .catch((e) => {
      throw new Error(`${e}\n${JSON.stringify([toldPod(lab, name)?.status, toldSync(lab, name)])}\n${lab.agent.log().slice(-2000)}`);
    });
  const [p, s] = [toldPod(lab, name), toldSync(lab, name)];
  assert.ok(p && s);
  assert.equal(p.status.phase, 'Failed');
  assert.match(s.message, words);
  return p;
};

describe('ports of the host', { concurrency: 4 }, () => {
  test('of two pods with one port the second is refused with the first one’s name, and runs as a new instance when the first has ended', async () => {
    const port = await freePort();
    drop(pod('first', { containers: [onPort(port, {}, httpd('first'))] }));
    await agreed(lab, 'first', runs);
    await says(port, 'first');
    drop(pod('second', { containers: [onPort(port, {}, httpd('second'))] }));
    const held = await refused('second', new RegExp(`port ${port}/TCP.*pod default/first`));
    assert.ok(runs(toldPod(lab, 'first') as ToldPod), 'the first goes on');
    assert.equal((await lab.bed.cri.sandboxes()).filter((s) => s.name === 'second').length, 0, 'nothing was made for the second');
    // the same number is free for UDP, and one address is free where another one is taken
    drop(pod('datagrams', { containers: [onPort(port, { protocol: 'UDP', hostIP: '127.0.0.1' })] }));
    drop(pod('elsewhere', { containers: [onPort(port, { protocol: 'UDP', hostIP: address() })] }));
    await Promise.all([agreed(lab, 'datagrams', runs), agreed(lab, 'elsewhere', runs)]);

    lab.agent.removeManifest('first.yaml');
    const { pod: now } = await agreed(lab, 'second', runs);
    assert.notEqual(now.metadata.uid, held.metadata.uid);
    await says(port, 'second');
  });

  test('a change of the namespace only is no conflict of a pod with itself: the new one waits for the old one and runs', async () => {
    const port = await freePort();
    drop(pod('moved', { containers: [onPort(port, {}, httpd('here'))] }));
    await agreed(lab, 'moved', runs);
    drop(pod('moved', { containers: [onPort(port, {}, httpd('there'))] }, { namespace: 'other' }));
    const [podTopic, syncTopic] = [lab.agent.topic('pods/other/moved'), lab.agent.topic('sync/other/moved')];
    await lab.watcher.until(podTopic, (p) => p !== undefined && runs(p as ToldPod));
    await lab.watcher.until(syncTopic, (s) => (s as SyncStatus | undefined)?.phase === 'Running');
    await lab.watcher.untilAll('the old one is gone', () => toldPod(lab, 'moved') === undefined);
    await says(port, 'there');
  });

  test('a port on which a process of the host listens is refused, and taken soon after the process has closed it', async () => {
    const port = await freePort();
    const server = createServer().listen(port, '0.0.0.0');
    await once(server, 'listening');
    drop(pod('late', { containers: [onPort(port)] }));
    drop(pod('late-host', { hostNetwork: true, containers: [container('main', serve, { ports: [{ containerPort: port }] })] }));
    const words = new RegExp(`port ${port}/TCP is used by \\S+ \\(pid ${process.pid}\\), which listens on 0\\.0\\.0\\.0:${port}`);
    await Promise.all([refused('late', words), refused('late-host', words)]);
    await sleep(2_000);
    assert.equal(toldPod(lab, 'late')?.status.phase, 'Failed');
    server.close();
    await once(server, 'close');
    // one of the two has it now, and the other one is told so
    const isUp = (name: string): boolean => {
      const told = toldPod(lab, name);
      return told !== undefined && runs(told);
    };
    // nobody says when a process goes: it is looked at 10 s later at first, and then less and less often
    await lab.watcher.untilAll('one of them runs', () => isUp('late') || isUp('late-host'), 45_000);
    const [winner, loser] = isUp('late') ? ['late', 'late-host'] : ['late-host', 'late'];
    await refused(loser, new RegExp(`port ${port}/TCP.*pod default/${winner}`));
    lab.agent.removeManifest(`${winner}.yaml`);
    await agreed(lab, loser, runs);
  });

  test('an edit to a port that another pod has waits, and the pod goes on as it was', async () => {
    const [mine, theirs] = [await freePort(), await freePort()];
    drop(pod('holder', { containers: [onPort(theirs)] }));
    drop(pod('editor', { containers: [onPort(mine)] }));
    const [first] = await Promise.all([agreed(lab, 'editor', runs), agreed(lab, 'holder', runs)]);
    drop(pod('editor', { containers: [onPort(theirs)] }));
    const blocked = () => toldSync(lab, 'editor')?.phase === 'UpdateBlocked' && toldSync(lab, 'editor')?.reason === 'NodePorts';
    await lab.watcher.untilAll('it waits', blocked);
    assert.match(toldSync(lab, 'editor')?.message ?? '', /pod default\/holder/);
    assert.equal((await agreed(lab, 'editor', runs)).pod.metadata.uid, first.pod.metadata.uid);
    lab.agent.removeManifest('holder.yaml');
    await agreed(lab, 'editor', (p, s) => runs(p) && p.metadata.uid !== first.pod.metadata.uid && s.phase === 'Running');
  });
});

test('what a pod on the host’s network listens on never stands against itself: not after an agent restart, and not when it is replaced', async () => {
  const port = await freePort();
  const listens = (text: string, more: Fields = {}) =>
    pod('host', {
      hostNetwork: true,
      containers: [container('main', ['sh', '-c', httpd(text)[2]?.replace('8080', `${port}`) ?? ''], { ports: [{ containerPort: port }] })],
      ...more,
    });
  drop(listens('old'));
  const first = await agreed(lab, 'host', runs);
  await says(port, 'old');
  await lab.agent.kill9();
  lab.agent.start();
  const seq = (p: ToldPod): number => Number(p.metadata.annotations?.['podsched.dev/seq'] ?? 0);
  const again = await agreed(lab, 'host', (p) => runs(p) && seq(p) > seq(first.pod));
  assert.deepEqual(footprint(again.shown), footprint(first.shown));

  drop(listens('new', { hostname: 'other' }));
  const second = await agreed(lab, 'host', (p, s) => runs(p) && p.metadata.uid !== first.pod.metadata.uid && s.phase === 'Running');
  assert.equal(second.pod.status.containerStatuses?.[0]?.restartCount, 0);
  await says(port, 'new');
});

test('no two instances of a pod lived together', () => {
  assert.deepEqual(lab.witness.offences, []);
});
