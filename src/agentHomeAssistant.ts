/** The wiring of Home Assistant's discovery: which pods have entities, what commands may do, how the message is told. Owns nothing. */
import type { PodschedConfiguration } from './api/configuration.ts';
import type { DesiredPod } from './api/desired.ts';
import type { Verb } from './api/verbs.ts';
import type { TellOptions } from './broker/retained.ts';
import { haLabel } from './homeassistant/discovery.ts';
import { HomeAssistant, type HomeAssistantDeps } from './homeassistant/manager.ts';
import type { BoardFacts } from './node/status.ts';

export interface HomeAssistantParts extends Pick<HomeAssistantDeps, 'clock' | 'log' | 'random' | 'store' | 'nodeName'> {
  /** Of the start: a change of these waits for a restart. */
  readonly config: PodschedConfiguration;
  readonly agentVersion: string;
  readonly heartbeatSeconds: () => number;
  /** The node has a broker to tell it to. */
  readonly session: {
    tell(topic: string, payload: string | undefined, options: TellOptions): void;
    again(topic: string): void;
    connected(): boolean;
    counters(): { readonly dirtyTopics: number };
  };
  /** All that are desired. */
  readonly pods: () => readonly DesiredPod[];
  readonly board: () => BoardFacts;
  /** By the policy of MQTT, as it is now; nothing where commands are not taken. */
  readonly allowsVerb: (verb: Verb) => boolean;
  /** About the node. */
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
}

export function buildHomeAssistant(parts: HomeAssistantParts): HomeAssistant {
  const { config, session, nodeName, agentVersion, heartbeatSeconds, pods, board, allowsVerb, event } = parts;
  return new HomeAssistant({
    ...parts,
    enabled: config['homeAssistant.enabled'],
    haPrefix: config['homeAssistant.prefix'],
    facts: () => {
      const { model, serial, hasTemperature, hasPower } = board();
      return {
        prefix: config['mqtt.prefix'],
        node: nodeName,
        agentVersion,
        ...(model !== undefined && { model }),
        ...(serial !== undefined && { serial }),
        heartbeatSeconds: heartbeatSeconds(),
        quiet: config['mqtt.profile'] === 'quiet',
        ...{ hasTemperature, hasPower },
        pods: pods().filter(({ pod }) => pod.metadata.labels?.[haLabel] === 'true'),
        allowsVerb: (verb) => config['mqtt.config'] && allowsVerb(verb),
      };
    },
    tell: (topic, payload) => session.tell(topic, payload, { qos: 1 }),
    again: (topic) => session.again(topic),
    told: () => session.connected() && session.counters().dirtyTopics === 0,
    leftOut: (what) => {
      if (what.length === 0) return;
      event('Warning', 'HomeAssistantFull', `no room in Home Assistant's message for ${what.length}: ${what.slice(0, 10).join(', ')}`);
    },
  });
}
