/**
 * The demo: a private containerd, the real bundle with the broker in it, the pods of manifests/, and a table drawn from MQTT messages
 * alone. Ctrl-C leaves nothing behind. `--once`: ends by itself when every pod was told Running or Succeeded and then told gone again.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startAgent } from './agent.ts';
import { startBed } from './bed.ts';
import { PodTable } from './demoTable.ts';
import { freePort, sleep } from './process.ts';
import { watchTopics } from './watcher.ts';

const { values: options } = parseArgs({ options: { once: { type: 'boolean', default: false } } });
const limitMs = 120_000;
const manifests = new URL('../../manifests/', import.meta.url).pathname;

const undo: (() => Promise<unknown>)[] = [];
let takingDown: Promise<void> | undefined;
/** Everything that was started, newest first; asked twice it is done once. */
function takeDown(): Promise<void> {
  takingDown ??= (async () => {
    for (const step of undo.splice(0).reverse()) {
      await step().catch((e: unknown) => {
        console.error(`demo: ${e instanceof Error ? e.message : String(e)}`);
        process.exitCode = 1;
      });
    }
  })();
  return takingDown;
}

const interrupted = new Promise<'interrupted'>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve('interrupted'));
});

async function show(): Promise<void> {
  const table = new PodTable(process.stdout);
  table.say('starting a private containerd (its own root, state and socket)');
  const bed = await startBed({ name: 'demo' });
  undo.push(() => bed.stop());
  const port = await freePort();
  table.say(`starting podsched with its own broker on 127.0.0.1:${port}`);
  const agent = await startAgent(bed, {
    servers: ['embedded'],
    nodeName: 'demo',
    config: { mqtt: { embedded: { listen: `127.0.0.1:${port}` } } },
  });
  undo.push(() => agent.remove());
  const fail = (why: string) => new Error(`${why}\n${table.lines().join('\n')}\nthe agent's last words:\n${agent.log().slice(-3000)}`);
  const ended = agent.exited().then((how) => {
    throw fail(`the agent ended by itself (${how})`);
  });
  ended.catch(() => {}); // at the end it is meant to end
  const heard = watchTopics(`mqtt://127.0.0.1:${port}`, 'podsched/v1/#', 30_000);
  const watcher = await Promise.race([heard, ended]);
  undo.push(() => watcher.end());
  watcher.onMessage = (m) => table.heard(m.topic, m.text);

  const files = readdirSync(manifests).filter((f) => f.endsWith('.yaml'));
  const names = files.map((f) => f.replace(/\.yaml$/, ''));
  for (const file of files) {
    agent.drop(file, readFileSync(join(manifests, file), 'utf8'));
    table.say(`manifest ${file} renamed into ${agent.manifests}`);
  }
  const phase = (name: string) =>
    (watcher.values.get(agent.topic(`pods/default/${name}`)) as { status?: { phase?: string } } | undefined)?.status?.phase;
  const arrived = watcher.untilAll(
    'pods Running or Succeeded',
    () => names.every((n) => ['Running', 'Succeeded'].includes(phase(n) ?? '')),
    limitMs,
  );
  if (!options.once) {
    arrived.then(
      () => {
        table.say('every pod is told. Edit, add or remove a manifest and watch; Ctrl-C ends all. The messages themselves:');
        table.say(`  mosquitto_sub -p ${port} -v -t 'podsched/v1/#'`);
      },
      () => {},
    );
    await Promise.race([new Promise(() => {}), ended]);
    return;
  }
  // the one-shot pod is told Succeeded, the others Running
  const done = (name: string) => (name === 'backup' ? phase(name) === 'Succeeded' : phase(name) === 'Running');
  await Promise.race([watcher.untilAll('every pod as its manifest wants it', () => names.every(done), limitMs), ended]).catch(
    (e: unknown) => {
      throw fail(e instanceof Error ? e.message : String(e));
    },
  );
  table.say('every pod was told as its manifest wants it; now the manifests go');
  await sleep(500);
  for (const file of files) agent.removeManifest(file);
  const gone = () =>
    names.every((n) => !watcher.values.has(agent.topic(`pods/default/${n}`)) && !watcher.values.has(agent.topic(`sync/default/${n}`)));
  await Promise.race([watcher.untilAll('every pod gone', gone, limitMs), ended]).catch((e: unknown) => {
    throw fail(e instanceof Error ? e.message : String(e));
  });
  table.say('every pod was told gone');
}

let how: 'done' | 'interrupted' = 'done';
try {
  const deadline = sleep(limitMs).then(() => {
    if (options.once) throw new Error(`not done within ${limitMs / 1000} s`);
    return new Promise<never>(() => {});
  });
  how = await Promise.race([show().then(() => 'done' as const), interrupted, deadline]);
} catch (e) {
  console.error(`demo: ${e instanceof Error ? e.message : String(e)}`);
  process.exitCode = 1;
}
console.log(how === 'interrupted' ? '\ndemo: taking everything down' : 'demo: taking everything down');
await takeDown();
if (how === 'interrupted' && options.once) process.exitCode = 130;
if (process.exitCode === undefined || process.exitCode === 0) console.log('demo: nothing is left behind');
process.exit();
