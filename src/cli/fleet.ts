/**
 * `get nodes --server URL`: the whole fleet, from what its nodes have told the broker. No node is asked, so it costs them nothing, and one that is
 * away is there with its last words; a single node is asked itself (`--node`).
 */
import { nearest } from '../api/nearest.ts';
import { nodeTopics } from '../api/topics.ts';
import { spanText } from '../operations/age.ts';
import { nodeRow } from '../operations/nodeRow.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { Fleet, type FleetNode } from './fleetView.ts';
import { type Found, type GetOptions, type Item, type Printer, render, watch } from './get.ts';
import { isNodeKind, resting } from './nodes.ts';
import type { RemoteBroker } from './remoteBroker.ts';

const lookMs = 1000;
const none = '<none>';

/** Once, or with `watch` again at each change, staleness included. */
export async function getFleet(
  what: string,
  names: readonly string[],
  o: Pick<GetOptions, 'output' | 'watch'>,
  remote: RemoteBroker,
  print: Printer,
): Promise<number> {
  const [word = '', slashed] = what.split(/\/(.*)/s);
  if (!isNodeKind(word))
    throw new CommandError(
      exitCodes.usage,
      `of a whole fleet nodes can be listed; ${JSON.stringify(what)} is asked of one node: --node NAME`,
    );
  const wanted = slashed === undefined ? names : [slashed, ...names];
  const fleet = new Fleet(remote.prefix, remote.clock);
  const every = nodeTopics(remote.prefix, '+');
  await remote.listenWhole([every.online, every.info, every.summary, every.duplicate('+')], (m) => fleet.heard(m));
  const look = async (): Promise<Found> => rowsOf(fleet.nodes(), wanted, o);
  if (o.watch) return watch(look, () => remote.wait(lookMs), o, print);
  const found = await look();
  if (found.items.length === 0 && (o.output === undefined || o.output === 'wide')) print.err('No nodes found on this broker.\n');
  else print.out(render(found, o.output, wanted.length === 1));
  return exitCodes.done;
}

function rowsOf(
  all: readonly FleetNode[],
  names: readonly string[],
  { output, watch: watched }: Pick<GetOptions, 'output' | 'watch'>,
): Found {
  const missing = names.find((name) => !all.some((n) => n.name === name));
  if (missing !== undefined) {
    const close = nearest(
      missing,
      all.map((n) => n.name),
    );
    const meant = close === undefined ? '' : `; did you mean ${close}?`;
    throw new CommandError(exitCodes.notFound, `no node ${JSON.stringify(missing)} is known on this broker${meant}`);
  }
  const wide = output === 'wide';
  return {
    head: [
      ...['NAME', 'STATUS', 'PODS', 'UPTIME', 'VERSION', 'PROBLEMS'],
      ...(wide ? ['INTERNAL-IP', 'OS-IMAGE', 'KERNEL-VERSION', 'CONTAINER-RUNTIME', 'MODEL', 'TEMPERATURE'] : []),
    ],
    items: all.filter((n) => names.length === 0 || names.includes(n.name)).map((n) => itemOf(n, wide, watched)),
  };
}

function itemOf(node: FleetNode, wide: boolean, watched: boolean): Item {
  const { name, presence, info, summary, duplicates } = node;
  const row = info && nodeRow(info);
  const problems = [...(row === undefined || row.problems === none ? [] : [row.problems]), ...(duplicates > 0 ? ['DuplicateName'] : [])];
  return {
    name: `node/${name}`,
    object: {
      ...(info === undefined ? { apiVersion: 'v1', kind: 'Node', metadata: { name } } : watched ? resting(info) : info),
      // beside a v1 Node: how it stands with the broker, and the summary it told last
      podsched: { presence, ...(duplicates > 0 && { duplicates }), ...(summary && !watched && { summary }) },
    },
    row: [
      name,
      statusText(node),
      summary === undefined ? none : `${summary.pods.ready}/${summary.pods.desired}`,
      Number.isFinite(summary?.uptimeSeconds) ? spanText(Number(summary?.uptimeSeconds)) : (row?.uptime ?? none),
      row?.version ?? none,
      problems.length === 0 ? none : problems.join(','),
      ...(wide ? [row?.ip, row?.osImage, row?.kernel, row?.runtime, row?.model, row?.temperature].map((text) => text ?? none) : []),
    ],
  };
}

/** What it said of itself while it was there; after that only that it is not. */
function statusText({ presence, info }: FleetNode): string {
  switch (presence) {
    case 'online':
      return info === undefined ? 'Unknown' : nodeRow(info).status;
    case 'offline':
      return 'Offline';
    case 'lost':
      return 'Lost';
    case 'stale':
      return 'Stale';
    case 'duplicate':
      return 'Duplicate';
  }
}
