/** resync, identify, decommission, bundle and pins through the socket. */
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bundle, decommission, identify, pinImages, resync } from '../../src/cli/nodeActs.ts';
import type { ImagesView } from '../../src/operations/images.ts';
import { actOnNode, type NodeActDeps, type NodeActRequest } from '../../src/operations/nodeActs.ts';
import { withAgent } from './actsAgent.ts';

const deps: NodeActDeps = {
  nodeName: 'pi-07',
  readSources: async () => {},
  tellAll: () => {},
  forgetLost: async () => false,
  blink: async () => ({ ok: true, value: 'ACT' }),
  decommission: async () => 3,
};

function node(o: Partial<NodeActDeps> = {}) {
  const asked: NodeActRequest[] = [];
  const nodeAct = (r: NodeActRequest) => {
    asked.push(r);
    return actOnNode(r, { ...deps, ...o });
  };
  return { asked, view: { nodeAct } };
}

test('what is asked for arrives as it was meant', async () => {
  const { asked, view } = node();
  await withAgent(view, async (run) => {
    const said = [
      await run((client, print) => resync({}, client, print)),
      await run((client, print) => resync({ forgetLost: true }, client, print)),
      await run((client, print) => identify({}, client, print)),
      await run((client, print) => identify({ seconds: '3' }, client, print)),
      await run((client, print) => decommission({ confirm: 'pi-07' }, client, print)),
    ];
    assert.deepEqual(
      said.map((s) => s.code),
      [0, 0, 0, 0, 0],
    );
    assert.match(said[1]?.out ?? '', /nothing was lost/);
    assert.match(said[2]?.out ?? '', /^the light ACT of pi-07 blinks for 10 s\n$/);
    assert.match(said[4]?.out ?? '', /^pi-07 is out of the fleet: 3 objects from topics are gone/);
  });
  assert.deepEqual(asked, [
    { act: 'resync' },
    { act: 'resync', forgetLost: true },
    { act: 'identify' },
    { act: 'identify', seconds: 3 },
    { act: 'decommission', confirm: 'pi-07' },
  ]);
});

test('what cannot be done is said, and nothing is asked for by a slip of the pen', async () => {
  const { asked, view } = node({ blink: async () => ({ ok: false, code: 409, message: 'this machine has no light' }) });
  await withAgent(view, async (run) => {
    const none = await run((client, print) => identify({}, client, print));
    assert.deepEqual([none.code, none.err], [1, 'podsched: this machine has no light\n']);
    assert.equal((await run((client, print) => identify({ seconds: '1e9' }, client, print))).code, 1);
    assert.equal((await run((client, print) => identify({ seconds: 'long' }, client, print))).code, 2);
    const slip = await run((client, print) => decommission({}, client, print));
    assert.deepEqual([slip.code, /--confirm NODE/.test(slip.err)], [2, true]);
    const other = await run((client, print) => decommission({ confirm: 'pi-08' }, client, print));
    assert.deepEqual([other.code, /the name of the node, pi-07/.test(other.err)], [1, true]);
  });
  assert.equal(asked.filter((r) => r.act === 'decommission').length, 1);
});

test('a bundle goes to standard output, or into a new file that nobody else may read', () =>
  withAgent({ bundle: async () => ({ ok: true, value: { kind: 'SupportBundle', node: 'pi-07' } }) }, async (run, dir) => {
    assert.deepEqual(JSON.parse((await run((client, print) => bundle({}, client, print))).out), { kind: 'SupportBundle', node: 'pi-07' });
    const output = join(dir, 'b.json');
    const first = await run((client, print) => bundle({ output }, client, print));
    assert.deepEqual([first.code, first.out], [0, '']);
    assert.deepEqual(JSON.parse(readFileSync(output, 'utf8')), { kind: 'SupportBundle', node: 'pi-07' });
    assert.equal(statSync(output).mode & 0o777, 0o600);
    const again = await run((client, print) => bundle({ output }, client, print));
    assert.deepEqual([again.code, /it is there already/.test(again.err)], [1, true]);
  }));

test('images are pinned by name, one after the other, until one cannot be', async () => {
  const pins: string[] = [];
  const images = {
    pin: async (name: string, pinned: boolean) => {
      if (name === '%') return { ok: false, code: 400, message: '"%" names no image' };
      pins.push(`${name} ${pinned}`);
      return { ok: true, value: { message: `image ${name} pinned` } };
    },
  } as unknown as ImagesView;
  await withAgent({ images }, async (run) => {
    const done = await run((client, print) => pinImages(true, ['r/a:1', 'r/b:1'], client, print));
    assert.deepEqual([done.code, done.out], [0, 'image r/a:1 pinned\nimage r/b:1 pinned\n']);
    const wrong = await run((client, print) => pinImages(false, ['%', 'r/c:1'], client, print));
    assert.deepEqual([wrong.code, wrong.err], [1, 'podsched: "%" names no image\n']);
  });
  assert.deepEqual(pins, ['r/a:1 true', 'r/b:1 true']);
});
