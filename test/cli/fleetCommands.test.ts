/** The commands about a fleet as they are typed: options, mistakes, help. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Command, CommanderError } from 'commander';
import { startEmbedded } from '../../src/broker/embedded.ts';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';
import { addFleetCommands } from '../../src/cli/fleetCommands.ts';
import { silentLog } from '../../src/world/log.ts';

const dir = mkdtempSync(join(tmpdir(), 'podsched-fleet-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const manifest = join(dir, 'web.yaml');
writeFileSync(manifest, 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: "b:1"}]}\n');

async function typed(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; out: string; err: string }> {
  let [out, err, code] = ['', '', -1];
  const print = { out: (t: string) => (out += t), err: (t: string) => (err += t), nowMs: () => 0, sleep: async () => {} };
  const program = new Command('podsched').exitOverride().configureOutput({ writeOut: print.out, writeErr: print.err });
  addFleetCommands(program, { print, env, stdin: async () => new Uint8Array() }, (is) => {
    code = is;
  });
  for (const command of program.commands)
    for (const c of [command, ...command.commands]) c.exitOverride().configureOutput({ writeOut: print.out, writeErr: print.err });
  try {
    await program.parseAsync(args, { from: 'user' });
    return { code, out, err };
  } catch (e) {
    if (e instanceof CommandError) return { code: e.code, out, err: err + e.message };
    if (e instanceof CommanderError) return { code: e.exitCode === 0 ? exitCodes.done : exitCodes.usage, out, err };
    throw e;
  }
}

test('without node, group or all the folder of this machine is meant', async () => {
  const folder = join(dir, 'manifests');
  mkdirSync(folder);
  const config = join(dir, 'agent.yaml');
  writeFileSync(config, `apiVersion: podsched.dev/v1\nkind: PodschedConfiguration\nstaticPodPath: ${folder}\n`);
  assert.deepEqual(await typed(['apply', '-f', manifest, '--config', config]), { code: 0, out: 'pod/web created\n', err: '' });
  assert.deepEqual(readdirSync(folder), ['default.web.pod.yaml']);
  assert.equal((await typed(['diff', '-f', manifest], { PODSCHED_STATIC_POD_PATH: folder })).code, 0);
  assert.deepEqual(await typed(['delete', 'web', '--config', config]), { code: 0, out: 'pod "web" deleted\n', err: '' });
  assert.deepEqual(readdirSync(folder), []);
});

test('on a broker: apply, diff, rollout, delete and forget as they are typed', async () => {
  const embedded = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
  const at = (...args: string[]) => typed([...args, '--server', embedded.url]);
  try {
    assert.deepEqual(await at('apply', '-f', manifest, '--group', 'attic', '--generation', '4'), {
      code: 0,
      out: 'pod/web created (group attic)\n',
      err: '',
    });
    assert.equal((await at('diff', '-f', manifest, '--group', 'attic')).code, 0);
    const created = await at(
      'rollout',
      'create',
      'r1',
      '--group',
      'attic',
      '-f',
      manifest,
      '--wave',
      'site=attic:10%',
      '--wave',
      '100%',
      '--bake',
      '1m',
    );
    assert.match(created.out, /pod\/web configured[\s\S]*rollout\/r1 created \(group attic, 2 waves\)/);
    assert.match((await at('rollout', 'status', 'r1')).out, /running, gate 0 of 2; pod\/web generation 5/);
    assert.match((await at('rollout', 'open', 'r1')).out, /gate 1 of 2/);
    assert.match((await at('rollout', 'abort', 'r1')).out, /aborted at gate 1/);
    assert.equal((await at('rollout', 'run', 'r1')).code, exitCodes.failed);
    assert.equal((await at('delete', 'web', '--group', 'attic')).code, 0);
    assert.equal((await at('delete', 'web', '--group', 'attic')).code, exitCodes.notFound);
    assert.equal((await at('forget', 'pi-9', '--force')).code, exitCodes.notFound);
  } finally {
    await embedded.close();
  }
});

const mistakes: readonly [readonly string[], number, RegExp][] = [
  [['apply'], exitCodes.usage, /which file\? -f FILE/],
  [['apply', '-f', manifest, '--node', 'a', '--all'], exitCodes.usage, /only one of them/],
  [['apply', '-f', manifest, '--all'], exitCodes.usage, /which broker\?/],
  [['apply', '-f', manifest, '--all', '--generation', 'x'], exitCodes.usage, /--generation/],
  [['apply', '-f', manifest, '--all', '--sign', '/nowhere'], exitCodes.usage, /\/nowhere cannot be read/],
  [['apply', '-f', manifest, '--all', '--sign', manifest], exitCodes.usage, /no private key/],
  [['delete'], exitCodes.usage, /which one\?/],
  [['rollout', 'create', 'r1', '-f', manifest], exitCodes.usage, /whose rollout\?|which broker\?/],
  [['rollout', 'status', '-o', 'table'], exitCodes.usage, /--output/],
  [['forget', 'pi-1', '--server', 'mqtt://127.0.0.1:1'], exitCodes.unreachable, /no broker can be reached/],
  [['forget'], exitCodes.usage, /missing required argument/],
];
for (const [args, code, text] of mistakes) {
  test(`a mistake is said: podsched ${args.slice(0, 5).join(' ').replaceAll(dir, '')}`, async () => {
    const said = await typed(args);
    assert.match(said.err, text);
    assert.equal(said.code, code);
  });
}

test('help names every command and option', async () => {
  assert.match((await typed(['--help'])).out, /apply[\s\S]*delete[\s\S]*diff[\s\S]*rollout[\s\S]*forget/);
  assert.match((await typed(['rollout', '--help'])).out, /create[\s\S]*run\|continue[\s\S]*status[\s\S]*open[\s\S]*abort/);
  assert.match((await typed(['apply', '--help'])).out, /--sign[\s\S]*--no-index/);
});
