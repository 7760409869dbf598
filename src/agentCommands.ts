/** The wiring of commands over MQTT: the session that brings and answers them, the policy that judges them, the view that does them. Owns nothing. */
import type { PodschedConfiguration } from './api/configuration.ts';
import type { BrokerSession } from './broker/session.ts';
import type { PolicySide } from './kubeletPolicy.ts';
import { allowsNamespace, allowsVerb } from './policy/policy.ts';
import { Commands, type CommandsDeps } from './remote/commands.ts';

export interface CommandParts
  extends Pick<CommandsDeps, 'clock' | 'log' | 'nodeName' | 'bootId' | 'boot' | 'seq' | 'store' | 'event' | 'view'> {
  readonly config: Pick<PodschedConfiguration, 'mqtt.prefix'>;
  readonly session: () => Pick<BrokerSession, 'session' | 'reply' | 'largestMessage'>;
  readonly policy: Pick<PolicySide, 'gate' | 'policy'>;
}

/** How long a piece of a followed log is of use to anybody, in seconds. */
const logExpirySeconds = 60;

export function buildCommands(parts: CommandParts): Commands {
  const { config, policy, session } = parts;
  return new Commands({
    ...parts,
    prefix: config['mqtt.prefix'],
    loadVerbs: async () => (await import('./remote/verbs.ts')).runVerb,
    session: () => session().session(),
    reply: (topic, payload, o) => session().reply(topic, payload, o),
    publishLogs: (topic, payload) => session().reply(topic, payload, { expirySeconds: logExpirySeconds, qos: 0 }),
    largestMessage: (topic) => session().largestMessage(topic),
    allows: (verb) => allowsVerb(policy.policy('mqtt'), verb),
    allowsNamespace: (namespace) => allowsNamespace(policy.policy('mqtt'), namespace),
    openCommand: (bytes) => policy.gate.openCommand(bytes),
    judgeCommand: (command, verb, signed) => policy.gate.judgeCommand(command, verb, signed),
  });
}
