/** The commands of another machine, answered by the very code that answers them in its agent: over MQTT 5 and over 3.1.1. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verbs } from '../../src/api/verbs.ts';
import type { AgentClient } from '../../src/cli/client.ts';
import { exec } from '../../src/cli/exec.ts';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';
import { printFindings } from '../../src/cli/findings.ts';
import { get } from '../../src/cli/get.ts';
import { logs } from '../../src/cli/logs.ts';
import { podAct } from '../../src/cli/podActs.ts';
import { remoteClient } from '../../src/cli/remoteClient.ts';
import { describe as describeIt, showWhy } from '../../src/cli/show.ts';
import { topNode, topPods } from '../../src/cli/top.ts';
import type { NodeObject } from '../../src/node/info.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import { fakeConsole } from '../fakes/fakeConsole.ts';
import { event, ready, told } from '../operations/view.ts';
import { until } from '../until.ts';
import { answeringNode, type Bed, fleetBed, openNode, root } from './fleetBed.ts';

const ends = (code: number, text: RegExp) => (e: unknown) => {
  assert.ok(e instanceof CommandError, String(e));
  assert.match(e.message, text);
  assert.equal(e.code, code);
  return true;
};

const node: NodeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'pi-07', labels: {}, annotations: {} },
  status: {
    addresses: [],
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', lastTransitionTime: 't' }],
    nodeInfo: { kubeletVersion: 'podsched 1.2.3' },
  },
};

interface Asked extends Bed {
  readonly client: AgentClient;
  readonly node: Awaited<ReturnType<typeof answeringNode>>;
  readonly bytes: Uint8Array[];
  text(): string;
  readonly output: { readonly isTerminal: boolean; write(bytes: Uint8Array): Promise<void> };
}

async function asked(version: 4 | 5, view: Partial<AgentView> = {}): Promise<Asked> {
  const bed = await fleetBed(version);
  const answering = await answeringNode(bed, { view: { node: async () => node, ...view }, allows: verbs });
  const client = remoteClient(await openNode(bed));
  const bytes: Uint8Array[] = [];
  return {
    ...bed,
    client,
    node: answering,
    bytes,
    text: () => Buffer.concat(bytes.splice(0)).toString(),
    output: { isTerminal: false, write: async (part) => void bytes.push(part) },
  };
}

const chunks = (...texts: string[]) =>
  (async function* () {
    for (const text of texts) yield Buffer.from(text);
  })();
const one = { namespace: 'default', allNamespaces: false, watch: false };

for (const version of [5, 4] as const) {
  const name = (text: string): string => `MQTT ${version === 5 ? '5' : '3.1.1'}: ${text}`;

  test(name('get, describe and why say what they say on the machine itself'), async () => {
    const bed = await asked(version);
    await bed.still(get('pods', [], { ...one, allNamespaces: true }, bed.client, bed.print));
    assert.match(bed.said(), /^default +web +1\/1 +Running/m);
    await bed.still(get('nodes', [], one, bed.client, bed.print));
    assert.match(bed.said(), /^pi-07 +Ready/m);
    await bed.still(get('files', [], one, bed.client, bed.print));
    assert.match(bed.said(), /half\.yaml/);
    await bed.still(get('events', [], one, bed.client, bed.print));
    assert.match(bed.said(), /BackOff/);
    await bed.still(describeIt('pod', 'web', 'default', bed.client, bed.print));
    assert.match(bed.said(), /^Name: +web$[\s\S]*back-off 10s/m);
    await bed.still(describeIt('node', undefined, 'default', bed.client, bed.print));
    assert.match(bed.said(), /^Name: +pi-07$/m);
    await bed.still(showWhy('web', { namespace: 'default' }, bed.client, bed.print));
    assert.match(bed.said(), /web/);
    await bed.still(showWhy('web', { namespace: 'default', output: 'yaml' }, bed.client, bed.print));
    assert.match(bed.said(), /^reason: Ready$/m);
    await assert.rejects(
      bed.still(showWhy('wep', { namespace: 'default' }, bed.client, bed.print)),
      ends(exitCodes.notFound, /did you mean "web"/),
    );
  });

  test(name('a log of many pieces comes whole, and what is not there is said'), async () => {
    const long = 'line of a log\n'.repeat(20_000);
    const bed = await asked(version, { logs: async () => ({ ok: true, value: chunks(long.slice(0, 100_001), long.slice(100_001)) }) });
    assert.equal(await bed.still(logs('web', { namespace: 'default', tail: '5' }, bed.client, bed.output)), exitCodes.done);
    assert.equal(bed.text(), long);
    await assert.rejects(bed.still(logs('nobody', { namespace: 'default' }, bed.client, bed.output)), ends(exitCodes.notFound, /nobody/));
  });

  test(name('another node than the one that is asked is not described as if it were'), async () => {
    const bed = await asked(version);
    await assert.rejects(
      bed.still(describeIt('node', 'pi-08', 'default', bed.client, bed.print)),
      ends(exitCodes.notFound, /"pi-08" is not this one, which is pi-07/),
    );
    await bed.still(describeIt('node', 'pi-07', 'default', bed.client, bed.print));
    assert.match(bed.said(), /^Name: +pi-07$/m);
  });

  test(name('logs -p -f is the log of the instance before, which has ended: nothing is followed'), async () => {
    const queries: unknown[] = [];
    const bed = await asked(version, {
      logs: async (query) => {
        queries.push(query);
        return { ok: true, value: chunks('boom\n') };
      },
    });
    assert.equal(
      await bed.still(logs('web', { namespace: 'default', previous: true, follow: true }, bed.client, bed.output)),
      exitCodes.done,
    );
    assert.equal(bed.text(), 'boom\n');
    assert.match(JSON.stringify(queries), /"previous":true/);
  });

  test(name('exec has output, errors and exit code of the program'), async () => {
    const commands: unknown[] = [];
    const bed = await asked(version, {
      execCaptured: async ({ command, container }) => {
        commands.push([container, command]);
        return { ok: true, value: { exitCode: 3, stdout: Buffer.from('out'), stderr: Buffer.from('err'), truncated: true } };
      },
    });
    const errors: Uint8Array[] = [];
    const console = {
      ...fakeConsole(),
      output: bed.output,
      errors: { isTerminal: false, write: async (b: Uint8Array) => void errors.push(b) },
    };
    const world = { print: bed.print, console };
    assert.equal(await bed.still(exec('web', ['cat', 'a b'], { namespace: 'default' }, bed.client, world)), 3);
    assert.deepEqual(commands, [['app', ['cat', 'a b']]]);
    assert.equal(bed.text(), 'out');
    assert.equal(Buffer.concat(errors).toString(), 'err');
    assert.match(bed.err.join(''), /the output was cut[\s\S]*exit code 3/);
    await assert.rejects(
      bed.still(exec('web', ['sh'], { namespace: 'default', tty: true }, bed.client, world)),
      ends(exitCodes.usage, /no sessions over MQTT/),
    );
  });

  test(name('acts are begun with what was said of them, and answer in the words of the node'), async () => {
    const acts: unknown[] = [];
    const bed = await asked(version, {
      act: async (request) => {
        acts.push(request);
        return { ok: true, value: { message: 'pod/web restarts' } };
      },
      nodeAct: async (request) => {
        acts.push(request);
        return { ok: true, value: { message: 'done' } };
      },
    });
    await bed.still(podAct('restart', 'web', { namespace: 'default', container: 'app' }, bed.client, bed.print));
    assert.equal(bed.said(), 'pod/web restarts\n');
    await bed.still(podAct('restart', 'web', { namespace: 'default', new: true }, bed.client, bed.print));
    await bed.still(podAct('stop', 'web', { namespace: 'default' }, bed.client, bed.print));
    await bed.still(bed.client.nodeAct({ act: 'identify', seconds: 5 }));
    await bed.still(bed.client.nodeAct({ act: 'decommission', confirm: 'pi-07' }));
    assert.deepEqual(acts, [
      { act: 'restart', namespace: 'default', pod: 'web', container: 'app' },
      { act: 'restart', namespace: 'default', pod: 'web', new: true },
      { act: 'stop', namespace: 'default', pod: 'web' },
      { act: 'identify', seconds: 5 },
      { act: 'decommission', confirm: 'pi-07' },
    ]);
  });

  test(name('images, usage, the bundle and the doctor'), async () => {
    const images = {
      list: async () => [{ id: 'sha256:aa', tags: ['app:1'], digests: [], sizeBytes: 1, usedBy: [], pinned: [] }],
      prune: async () => ({ ok: true, value: { dryRun: true, removed: [], failed: [], freedBytes: 0, offline: false } }) as const,
      pull: async (image: string) => ({ ok: true, value: { image, id: 'sha256:aa' } }) as const,
      import: async () => ({ ok: true, value: { images: [], problems: [] } }) as const,
      pin: async (image: string, pinned: boolean) => ({ ok: true, value: { message: `${image} ${pinned}` } }) as const,
    };
    const usage = { apiVersion: 'podsched.dev/v1', timestamp: '', window: '1s', usage: { cpu: '5m', memory: '2048Ki' } } as const;
    const stats = {
      topPods: async () =>
        [{ ...usage, kind: 'PodUsage', metadata: { name: 'web', namespace: 'default', uid: 'u' }, containers: [] }] as const,
      topNode: async () =>
        ({ ...usage, kind: 'NodeUsage', metadata: { name: 'pi-07' }, allocatable: { cpu: '4', memory: '4Gi' } }) as const,
      summary: async () => ({ node: { nodeName: 'pi-07' }, pods: [] }),
    };
    const bed = await asked(version, {
      images: images as unknown as NonNullable<AgentView['images']>,
      stats: stats as unknown as NonNullable<AgentView['stats']>,
      bundle: async () => ({ ok: true, value: { kind: 'SupportBundle', text: 'x'.repeat(200_000) } }),
      doctor: async () => [{ name: 'clock', level: 'wrong', message: 'not set', remedy: 'set it' }],
    });
    assert.deepEqual(
      (await bed.still(bed.client.images())).map((i) => i.tags),
      [['app:1']],
    );
    assert.equal((await bed.still(bed.client.pullImage('app:2'))).image, 'app:2');
    assert.equal((await bed.still(bed.client.pruneImages(true))).dryRun, true);
    assert.equal((await bed.still(bed.client.pinImage('app:1', false))).message, 'app:1 false');
    await bed.still(topPods([], { namespace: 'default' }, bed.client, bed.print));
    assert.match(bed.said(), /^web +5m +2Mi$/m);
    await bed.still(topNode(undefined, {}, bed.client, bed.print));
    assert.match(bed.said(), /^pi-07 +5m/m);
    assert.equal(((await bed.still(bed.client.bundle())) as { text: string }).text.length, 200_000);
    assert.equal(printFindings((await bed.still(bed.client.doctor?.() ?? assert.fail())) ?? [], bed.print), exitCodes.failed);
    assert.equal(bed.said(), 'WRONG  clock: not set\n       set it\n');
  });
}

test('what the policy of the node denies is said, and what needs the machine itself is not even asked', async () => {
  const bed = await fleetBed();
  await answeringNode(bed, { allows: ['get'] });
  const client = remoteClient(await openNode(bed));
  await assert.rejects(
    bed.still(client.act({ act: 'restart', namespace: 'default', pod: 'web' })),
    ends(exitCodes.failed, /does not allow restart over MQTT/),
  );
  await assert.rejects(client.session('/exec/a/b/c'), ends(exitCodes.usage, /needs the machine itself/));
  await assert.rejects(client.importImages('/x.tar'), ends(exitCodes.usage, /needs the machine itself/));
});

test('logs -f: lines come while a lease runs, which is renewed, and it ends with the container', async () => {
  const lines: { readonly push: (text: string) => void; readonly end: () => void }[] = [];
  const bed = await asked(5, {
    logs: async (_, signal) => {
      const waiting: string[] = ['first\n'];
      let wake = (): void => {};
      let over = false;
      const turn = (): Promise<void> =>
        new Promise((resolve) => {
          wake = resolve;
        });
      signal.addEventListener('abort', () => wake());
      lines.push({
        push: (text) => {
          waiting.push(text);
          wake();
        },
        end: () => {
          over = true;
          wake();
        },
      });
      return {
        ok: true,
        value: (async function* () {
          while (!signal.aborted) {
            for (let text = waiting.shift(); text !== undefined; text = waiting.shift()) yield Buffer.from(text);
            if (over) return;
            await turn();
          }
        })(),
      };
    },
  });
  const work = logs('web', { namespace: 'default', follow: true }, bed.client, bed.output);
  work.catch(() => {});
  await until('it is followed', () => bed.bytes.length > 0);
  await bed.pass(150);
  lines[0]?.push('much later\n');
  await bed.pass(50);
  assert.equal(bed.text(), 'first\nmuch later\n');
  assert.equal(lines.length, 1, 'one stream, kept by its lease');
  lines[0]?.end();
  assert.equal(await bed.still(work), exitCodes.done);
});

test('events -w: those of before are asked for once, and each that the node tells is printed as it comes', async () => {
  const bed = await asked(5);
  const work = get('events', [], { ...one, watch: true }, bed.client, bed.print);
  work.catch(() => {});
  await until('the first look', () => bed.out.length > 0);
  await bed.pass(5);
  assert.match(bed.said(), /BackOff/);
  const commands = (): number => bed.broker.publishes.filter((p) => p.topic.startsWith(`${root}/cmd/`)).length;
  const before = commands();
  bed.broker.say(`${root}/nodes/pi-07/events/default`, JSON.stringify(event('cam', 'Started', 'it runs')));
  bed.broker.say(
    `${root}/nodes/pi-07/events/kitchen`,
    JSON.stringify(event('oven', 'Hot', 'x', { metadata: { name: 'oven.1', namespace: 'kitchen' } })),
  );
  bed.broker.say(`${root}/nodes/pi-07/events/default`, 'not JSON');
  await bed.pass(5);
  const shown = bed.said();
  assert.match(shown, /Started +pod\/cam +it runs/);
  assert.ok(!shown.includes('Hot') && !shown.includes('BackOff'));
  assert.equal(commands(), before);
  bed.broker.cut();
  await assert.rejects(bed.still(work), ends(exitCodes.unreachable, /connection to the broker ended/));
});

test('pods -w: the node is asked again when it has told something, and not before', async () => {
  let pods = [told('web', { status: ready })];
  const bed = await asked(5, { pods: () => pods, sync: () => [] });
  const work = get('pods', [], { ...one, watch: true }, bed.client, bed.print);
  work.catch(() => {});
  await until('the first look', () => bed.out.length > 0);
  await bed.pass(60);
  assert.match(bed.said(), /^web/m);
  const commands = (): number => bed.broker.publishes.filter((p) => p.topic.startsWith(`${root}/cmd/`)).length;
  const before = commands();
  assert.ok(before <= 2, `${before} commands for one look`);
  pods = [told('web', { status: { phase: 'Failed' } }), told('cam')];
  bed.broker.say(`${root}/nodes/pi-07/pods/default/cam`, '{}', { retain: true });
  await bed.pass(5);
  assert.match(bed.said(), /^cam/m);
  bed.broker.cut();
  await assert.rejects(bed.still(work));
});
