/** The boot counter was lost with its store: the broker may remember it, in the node's own retained `online`. Owns nothing. */
import type { NodeTopics } from '../api/topics.ts';
import type { BrokerConnection } from '../world/broker.ts';
import type { Log } from '../world/log.ts';
import type { Marker } from './marker.ts';
import { refusedCode } from './subtree.ts';
import type { SessionIdentity } from './words.ts';

export interface LostBootDeps {
  readonly log: Log;
  readonly topics: Pick<NodeTopics, 'marker'>;
  readonly identity: SessionIdentity;
  readonly marker: Marker;
  /** The greatest counter that was heard so far. */
  readonly seen: () => number | undefined;
}

const markerTries = 2;

/** Takes the one after the greatest seen. True when the will already given to the broker has the wrong one. Rejects when the connection ends. */
export async function adoptLostBoot(connection: BrokerConnection, { log, topics, identity, marker, seen }: LostBootDeps): Promise<boolean> {
  const inWill = identity.boot();
  const heard = (await refusedCode(connection.subscribe([topics.marker], 1))) === undefined;
  const came = heard && (await marker.wait(markerTries));
  if (!came) log.warn({}, 'the marker does not come back: the boot counter is taken from what was seen so far');
  if (heard) await connection.unsubscribe([topics.marker]);
  await identity.adoptBoot(seen());
  return identity.boot() !== inWill;
}
