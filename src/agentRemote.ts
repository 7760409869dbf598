/**
 * The wiring of what comes from the broker: which topics are followed, and who takes what arrives on them. Owns that list only; desired state is
 * config/'s, commands are remote/'s, Home Assistant's word is homeassistant/'s.
 */
import type { PodschedConfiguration } from './api/configuration.ts';
import type { NodeConfig } from './api/messages.ts';
import { nodeTopics } from './api/topics.ts';
import type { Inbox } from './broker/inbox.ts';
import type { BrokerSession } from './broker/session.ts';
import { RemoteSource } from './config/remote.ts';
import type { RemoteDeps } from './config/remoteWords.ts';
import type { HomeAssistant } from './homeassistant/manager.ts';
import type { Commands } from './remote/commands.ts';

export interface RemoteParts extends Pick<RemoteDeps, 'clock' | 'log' | 'store' | 'nodeName'> {
  readonly config: () => PodschedConfiguration;
  /** `_config` is another now. */
  readonly configChanged: (config: NodeConfig | undefined) => void;
  readonly session: () => BrokerSession;
  readonly commands: () => Commands | undefined;
  readonly homeAssistant: () => HomeAssistant | undefined;
}

export interface RemoteSide {
  /** undefined: desired state is not taken from the broker. */
  readonly source: RemoteSource | undefined;
  readonly inbox: Inbox;
  /** Once what is stored has been read: groups may have been set from afar. */
  start(): void;
}

/** A broker of our own that asks nobody for a password is no source of orders: whoever can reach it could give them. */
export const takesOrders = (config: PodschedConfiguration): boolean =>
  config['mqtt.config'] &&
  config['mqtt.servers'].length > 0 &&
  !(config['mqtt.servers'].includes('embedded') && config['mqtt.embedded.passwordFile'] === '');

export function buildRemote(parts: RemoteParts): RemoteSide {
  const { config, session, commands, homeAssistant, nodeName } = parts;
  const prefix = config()['mqtt.prefix'];
  const topics = nodeTopics(prefix, nodeName);
  const ours = topics.commands.slice(0, -1);
  const orders = takesOrders(config());
  const follow = (filters: readonly string[]): void => {
    session().follow([...(orders ? [topics.commands] : []), ...filters, ...(homeAssistant()?.filters ?? [])]);
  };
  const source = orders
    ? new RemoteSource({
        ...parts,
        prefix,
        groups: () => config()['mqtt.groups'],
        labels: () => config().nodeLabels,
        fetch: (wanted) => session().fetch(wanted),
        follow,
        configChanged: parts.configChanged,
      })
    : undefined;
  return {
    source,
    start: () => follow(source?.filters() ?? []),
    inbox: {
      message: (m) => {
        if (m.topic.startsWith(ours)) commands()?.message(m);
        else if (m.topic === homeAssistant()?.statusTopic) homeAssistant()?.message(m.payload);
        else source?.message(m);
      },
      snapshot: (filters) => source?.snapshot(filters),
      connected: () => {
        source?.connected();
        commands()?.connected();
      },
      disconnected: () => {
        source?.disconnected();
        commands()?.disconnected();
      },
    },
  };
}
