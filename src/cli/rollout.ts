/**
 * `rollout create|run|status|open|abort|list`: an object onto a fleet wave by wave. The whole state is the retained Rollout message and what the
 * nodes tell: whoever moves the gate may end at any moment and be started again anywhere, and while nobody does, everything stays as it is.
 */
import type { Rollout } from '../api/messages.ts';
import { wrongLabel, wrongLabelValue, wrongQualifiedName } from '../api/names.ts';
import { parseDuration } from '../api/quantity.ts';
import { waveOf } from '../api/rollout.ts';
import { parseTopic, rolloutTopic } from '../api/topics.ts';
import { parseObject } from '../broker/online.ts';
import { harmless } from '../world/terminal.ts';
import { anyNode, type FilesWorld, type PublishOptions, publish, type ScopeOptions, scopeOf } from './apply.ts';
import { scopeText, sorted } from './desiredPlan.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { type Output, type Printer, render } from './get.ts';
import { readManifests } from './manifests.ts';
import type { RemoteBroker } from './remoteBroker.ts';
import { decideGate, type GateNode } from './rolloutGate.ts';
import { parseRollout, RolloutView } from './rolloutView.ts';

export interface CreateOptions extends ScopeOptions, PublishOptions {
  readonly filename: readonly string[];
  /** `site=attic:10%`, `25%`, `site=attic,rack=2`; in their order. */
  readonly wave: readonly string[];
  /** How long a wave is watched after it is ready, as 10m. */
  readonly bake?: string;
  readonly abortAfter?: string;
}

const usage = (text: string): CommandError => new CommandError(exitCodes.usage, text);

const checkedId = (id: string): string => {
  const wrong = wrongLabel(id);
  if (wrong !== undefined) throw usage(`the id of a rollout: expected ${wrong}, got ${JSON.stringify(id)}`);
  return id;
};

/** A wave as it is written on a command line. Rejects with `usage`. */
export function parseWave(text: string): Rollout['waves'][number] {
  const wrong = (): CommandError =>
    usage(`--wave: expected LABEL=VALUE,…:PERCENT%, got ${JSON.stringify(text)}; as site=attic:10%, 25% or site=attic`);
  const [, labels = '', counted] = /^(.*?)(?:(?:^|:)(\d{1,3})%)?$/s.exec(text) ?? [];
  const percent = counted === undefined ? 100 : Number(counted);
  if (percent > 100 || (labels === '' && counted === undefined)) throw wrong();
  if (labels === '') return { percent };
  const selector = labels.split(',').map((pair): [string, string] => {
    const at = pair.indexOf('=');
    const [key, value] = [pair.slice(0, at), pair.slice(at + 1)];
    if (at < 1 || wrongQualifiedName(key) !== undefined || wrongLabelValue(value) !== undefined) throw wrong();
    return [key, value];
  });
  return { selector: Object.fromEntries(selector), percent };
}

/** The rollout first, its gate shut, then the objects: no node takes them before somebody opens it. */
export async function createRollout(
  id: string,
  o: CreateOptions,
  { remote, stdin }: { readonly remote: RemoteBroker; readonly stdin: FilesWorld['stdin'] },
  print: Printer,
): Promise<number> {
  const scope = scopeOf(o);
  if (scope === undefined || (scope !== 'all' && 'node' in scope))
    throw usage('whose rollout? --group GROUP, or --all: a single node has no waves');
  const waves = (o.wave.length === 0 ? ['100%'] : o.wave).map(parseWave);
  const bakeMs = o.bake === undefined ? undefined : parseDuration(o.bake);
  if (o.bake !== undefined && (bakeMs === undefined || bakeMs < 0))
    throw usage(`--bake: expected a duration such as 10m, got ${JSON.stringify(o.bake)}`);
  if (o.abortAfter !== undefined && !/^[1-9]\d{0,5}$/.test(o.abortAfter))
    throw usage(`--abort-after: expected a whole number from 1 on, got ${JSON.stringify(o.abortAfter)}`);
  const manifests = await readManifests(o.filename, { stdin, node: anyNode }, print);
  const topic = rolloutTopic(remote.prefix, checkedId(id));
  // who stands where depends on the id: one that was used would put old and new together
  const before = (await remote.retained([topic], (found) => found.size > 0)).get(topic);
  const rollout: Rollout = {
    apiVersion: 'podsched.dev/v1',
    kind: 'Rollout',
    id,
    waves,
    gate: 0,
    ...(bakeMs !== undefined && { bakeSeconds: Math.ceil(bakeMs / 1000) }),
    ...(o.abortAfter !== undefined && { abortAfterFailures: Number(o.abortAfter) }),
    state: 'running',
  };
  // one that was broken off before anything was open may be gone on with
  if (before !== undefined && JSON.stringify(sorted(parseObject(before))) !== JSON.stringify(sorted(rollout)))
    throw new CommandError(exitCodes.failed, `there is a rollout ${id} already (rollout status ${id} shows it): a new one needs a new id`);
  if (before === undefined) await write(remote, rollout);
  await publish(manifests, { ...o, rollout: id }, scope, remote, print);
  print.out(
    `rollout/${id} created (${scopeText(scope)}, ${waves.length === 1 ? '1 wave' : `${waves.length} waves`}); podsched rollout run ${id} moves it\n`,
  );
  if (!waves.some((wave) => wave.percent === 100 && wave.selector === undefined))
    print.err('no wave takes all nodes: those in none keep what they have (--wave 100% at the end takes the rest)\n');
  return exitCodes.done;
}

const write = (remote: RemoteBroker, rollout: Rollout): Promise<void> =>
  remote.publish(rolloutTopic(remote.prefix, rollout.id), JSON.stringify(rollout), { retain: true });

const longestLookMs = 30_000;

/** Moves the gate until all waves are through (0) or it is aborted (1). Can be ended and run again at any time. */
export async function runRollout(id: string, remote: RemoteBroker, print: Printer): Promise<number> {
  const view = await RolloutView.open(remote, checkedId(id));
  if (view.objects.length === 0)
    throw new CommandError(exitCodes.notFound, `no desired object of a group or of all belongs to rollout ${id}`);
  const { clock } = remote;
  let gate = view.rollout?.gate;
  let gateAt = clock.monotonic();
  let said = '';
  for (;;) {
    view.news = new AbortController();
    const { rollout } = view;
    if (rollout === undefined) throw new CommandError(exitCodes.notFound, `rollout ${id} is gone`);
    if (rollout.gate !== gate) {
      gate = rollout.gate;
      gateAt = clock.monotonic();
    }
    const now = clock.monotonic();
    const failures = [...view.failures()].map(([name, why]) => (why === '' ? name : `${name} (${why})`));
    const decision = decideGate(rollout, view.nodes(), { now, gateAt }, failures);
    switch (decision.act) {
      case 'open':
        print.out(`gate ${decision.gate} of ${rollout.waves.length}: ${harmless(decision.why)}\n`);
        await move(view, remote, { ...rollout, gate: decision.gate, state: 'running' });
        continue;
      case 'done':
        await move(view, remote, { ...rollout, state: 'done' });
        print.out(`rollout/${id} is done: ${rollout.waves.length} of ${rollout.waves.length} waves\n`);
        return exitCodes.done;
      case 'abort':
        await move(view, remote, { ...rollout, state: 'aborted' });
        throw new CommandError(
          exitCodes.failed,
          `rollout ${id} is aborted at gate ${rollout.gate}: ${decision.why}. Nodes behind it keep what they took`,
        );
      case 'ended':
        if (decision.state === 'aborted') throw new CommandError(exitCodes.failed, `rollout ${id} was aborted at gate ${rollout.gate}`);
        print.out(`rollout/${id} is done\n`);
        return exitCodes.done;
      case 'wait':
        if (decision.why !== said) print.out(`gate ${rollout.gate} of ${rollout.waves.length}: ${harmless(decision.why)}\n`);
        said = decision.why;
        // heartbeats that stay away are no news that comes
        await remote.wait(Math.max(1, Math.min(longestLookMs, (decision.at ?? Number.POSITIVE_INFINITY) - now)), view.news.signal);
        continue;
    }
  }
}

/** Writes it and goes on from that: it comes back from the broker, but a moment later. */
async function move(view: RolloutView, remote: RemoteBroker, rollout: Rollout): Promise<void> {
  await write(remote, rollout);
  view.rollout = rollout;
}

/** Opens the next wave by hand, or all waves up to `wave`. */
export async function openRollout(id: string, wave: string | undefined, remote: RemoteBroker, print: Printer): Promise<number> {
  const rollout = await readOne(id, remote);
  const gate = wave === undefined ? rollout.gate + 1 : Number(wave);
  if (!Number.isInteger(gate) || gate <= rollout.gate || gate > rollout.waves.length)
    throw usage(`rollout ${id} has ${rollout.waves.length} waves, and its gate stands at ${rollout.gate}: it only rises`);
  await write(remote, { ...rollout, gate, state: gate === rollout.waves.length ? 'done' : 'running' });
  print.out(`rollout/${id}: gate ${gate} of ${rollout.waves.length}\n`);
  return exitCodes.done;
}

/** Nobody moves the gate any more. Nodes behind it keep what they took. */
export async function abortRollout(id: string, remote: RemoteBroker, print: Printer): Promise<number> {
  const rollout = await readOne(id, remote);
  if (rollout.state !== 'aborted') await write(remote, { ...rollout, state: 'aborted' });
  print.out(`rollout/${id} aborted at gate ${rollout.gate} of ${rollout.waves.length}; apply the manifest of before to go back\n`);
  return exitCodes.done;
}

async function readOne(id: string, remote: RemoteBroker): Promise<Rollout> {
  const topic = rolloutTopic(remote.prefix, checkedId(id));
  const payload = (await remote.retained([topic], (found) => found.size > 0)).get(topic);
  const rollout = payload === undefined ? undefined : parseRollout(payload, id);
  if (rollout !== undefined) return rollout;
  throw new CommandError(exitCodes.notFound, `there is no rollout ${JSON.stringify(id)} on this broker`);
}

/** Each node of one rollout with its wave and how far it is; without an id all rollouts. */
export async function showRollouts(
  id: string | undefined,
  o: { readonly output?: Output },
  remote: RemoteBroker,
  print: Printer,
): Promise<number> {
  if (id === undefined) return listRollouts(o, remote, print);
  const view = await RolloutView.open(remote, checkedId(id));
  const { rollout } = view;
  if (rollout === undefined) throw new CommandError(exitCodes.notFound, `there is no rollout ${JSON.stringify(id)} on this broker`);
  const nodes = view.nodes();
  const rows = nodes.map((node) => rowOf(rollout, node));
  if (o.output === undefined || o.output === 'wide') {
    const objects = view.objects.map(
      ({ key, generation }) => `${key.kind.toLowerCase()}/${key.name}${generation === undefined ? '' : ` generation ${generation}`}`,
    );
    print.out(
      `rollout/${id}: ${rollout.state ?? 'running'}, gate ${rollout.gate} of ${rollout.waves.length}${objects.length === 0 ? '' : `; ${harmless(objects.join(', '))}`}\n`,
    );
    if (nodes.length === 0) print.err('no node has told anything of it\n');
  }
  const found = {
    head: ['NODE', 'WAVE', 'OPEN', 'STATE', 'REASON'],
    items: rows.map((row, i) => ({
      name: `node/${row[0]}`,
      object: { apiVersion: 'podsched.dev/v1', kind: 'RolloutNode', ...nodes[i] },
      row,
    })),
  };
  if (rows.length > 0 || (o.output !== undefined && o.output !== 'wide')) print.out(render(found, o.output, false));
  return exitCodes.done;
}

function rowOf(rollout: Rollout, node: GateNode): readonly string[] {
  const wave = waveOf(rollout, node);
  const open = wave !== undefined && wave <= rollout.gate ? 'yes' : 'no';
  return [
    node.name,
    wave === undefined ? '<none>' : String(wave),
    open,
    node.away ? `${node.progress},away` : node.progress,
    node.note ?? '<none>',
  ];
}

async function listRollouts(o: { readonly output?: Output }, remote: RemoteBroker, print: Printer): Promise<number> {
  const found = await remote.retained([rolloutTopic(remote.prefix, '+')]);
  const rollouts = [...found].flatMap(([topic, payload]): Rollout[] => {
    const about = parseTopic(remote.prefix, topic);
    const rollout = about?.of === 'rollout' ? parseRollout(payload, about.id) : undefined;
    return rollout === undefined ? [] : [rollout];
  });
  if (rollouts.length === 0 && o.output === undefined) print.err('No rollouts found.\n');
  else {
    const items = rollouts.map((r) => ({
      name: `rollout/${r.id}`,
      object: r,
      row: [r.id, r.state ?? 'running', `${r.gate}/${r.waves.length}`, r.bakeSeconds === undefined ? '<none>' : `${r.bakeSeconds}s`],
    }));
    print.out(render({ head: ['NAME', 'STATE', 'GATE', 'BAKE'], items }, o.output, false));
  }
  return exitCodes.done;
}
