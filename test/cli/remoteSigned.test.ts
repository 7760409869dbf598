/** What these commands sign, judged by what judges it on the node. */
import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Command, DesiredIndex } from '../../src/api/messages.ts';
import { applyRemote } from '../../src/cli/apply.ts';
import { deleteRemote } from '../../src/cli/delete.ts';
import { signer } from '../../src/cli/remoteOpen.ts';
import { openEnvelope, type PayloadKind, type TrustedKey } from '../../src/policy/dsse.ts';
import { newSigningKey } from '../../src/policy/signing.ts';
import { judgeSigned, judgeSignedCommand, wordsOf } from '../../src/policy/trust.ts';
import { fleetBed, online, openNode, root } from './fleetBed.ts';

const dir = mkdtempSync(join(tmpdir(), 'podsched-signed-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const { privateKeyPem, publicKeyPem, keyid } = newSigningKey();
const keyFile = join(dir, 'key.pem');
writeFileSync(keyFile, privateKeyPem, { mode: 0o600 });
const manifest = join(dir, 'web.yaml');
writeFileSync(manifest, 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: "b:1"}]}\n');

const key: TrustedKey = { keyid, publicKey: createPublicKey(publicKeyPem), file: 'ops.pem' };
const stdin = async () => new Uint8Array();

/** What is in an envelope, after its signature was checked. */
function opened(text: string | undefined, kind: PayloadKind): Readonly<Record<string, unknown>> {
  const is = openEnvelope(Buffer.from(text ?? ''), [key], kind);
  assert.ok(is.ok, JSON.stringify(is));
  return JSON.parse(Buffer.from(is.payload).toString()) as Readonly<Record<string, unknown>>;
}

for (const [name, scope, base, source] of [
  ['a node', { node: 'pi-07' }, 'nodes/pi-07', 'mqtt:node'],
  ['a group', { group: 'attic' }, 'groups/attic', 'mqtt:group/attic'],
  ['all', 'all', 'all', 'mqtt:all'],
] as const) {
  test(`signed objects, tombstones and indexes of ${name} are taken there`, async () => {
    const bed = await fleetBed();
    const sign = await signer(keyFile);
    const arrival = { source, signers: [key], required: true, receiver: { node: 'pi-07', groups: ['attic'] } };
    const at = (rest: string): string | undefined => bed.retained()[`${root}/desired/${base}/${rest}`];
    await bed.run(applyRemote({ filename: [manifest], sign }, scope, { remote: bed.remote, stdin }, bed.print));
    assert.equal(judgeSigned(wordsOf(opened(at('default/web'), 'manifest'), 'manifest'), arrival), undefined);
    assert.equal(judgeSigned(wordsOf(opened(at('_index'), 'index'), 'index'), arrival), undefined);
    const gone = deleteRemote(['web'], { namespace: 'default', tombstone: true, sign }, scope, { remote: bed.remote, stdin }, bed.print);
    await bed.run(gone);
    assert.equal(judgeSigned(wordsOf(opened(at('default/web'), 'manifest'), 'manifest'), arrival), undefined);
    assert.deepEqual((opened(at('_index'), 'index') as unknown as DesiredIndex).entries, []);
  });
}

test('a signed command is taken by the node it is for', async () => {
  const bed = await fleetBed();
  bed.broker.say(`${root}/nodes/pi-07/online`, online('pi-07'), { retain: true });
  const sign = await signer(keyFile);
  const node = await openNode(bed, 'pi-07', { sign: (text) => sign(text, 'command') });
  let sent = '';
  bed.broker.onPublish = (p) => {
    if (p.topic.startsWith(`${root}/cmd/`)) sent = p.payload;
    return 'ack';
  };
  const asked = node.ask('exec', { target: { pod: 'web' }, args: { command: ['id'] } });
  asked.catch(() => {});
  await bed.pass(1);
  const command = opened(sent, 'command') as unknown as Command;
  assert.equal(judgeSignedCommand(command, { verb: 'exec', signers: [key], required: true, node: 'pi-07' }), undefined);
  assert.notEqual(judgeSignedCommand(command, { verb: 'exec', signers: [key], required: true, node: 'pi-08' }), undefined);
  await assert.rejects(bed.run(asked));
});
