/**
 * The agent's half of what a fleet sees of the node beside pods and objects, and of what it may ask: summary and metrics, Home Assistant,
 * commands. Owns nothing; the rooms do.
 */
import { buildCommands } from './agentCommands.ts';
import { buildHomeAssistant } from './agentHomeAssistant.ts';
import type { RemoteSide } from './agentRemote.ts';
import { buildSummary } from './agentSummary.ts';
import { AgentVerbs } from './agentVerbs.ts';
import type { PodschedConfiguration } from './api/configuration.ts';
import type { BrokerSession } from './broker/session.ts';
import type { CriRuntime } from './cri/runtime.ts';
import type { HomeAssistant } from './homeassistant/manager.ts';
import type { Kubelet } from './kubelet.ts';
import type { PolicySide } from './kubeletPolicy.ts';
import type { Identity } from './node/identity.ts';
import type { NodeStatus } from './node/status.ts';
import type { AgentView, NodeCondition } from './operations/agentView.ts';
import type { StatsView } from './operations/stats.ts';
import { allowsVerb } from './policy/policy.ts';
import type { Commands } from './remote/commands.ts';
import type { Clock } from './world/clock.ts';
import type { Log } from './world/log.ts';
import type { Store } from './world/store.ts';

export interface FleetParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  readonly config: () => PodschedConfiguration;
  readonly identity: Identity;
  readonly seq: () => number;
  readonly stateStore: Store;
  readonly runStore: Store;
  readonly runtime: CriRuntime;
  readonly session: BrokerSession;
  readonly remote: RemoteSide;
  readonly policy: PolicySide;
  readonly kubelet: Kubelet;
  readonly nodeStatus: NodeStatus;
  readonly stats: StatsView;
  readonly conditions: () => readonly NodeCondition[];
  readonly heartbeatSeconds: () => number;
  readonly view: () => AgentView | undefined;
  /** Policies and keys are read again, and what they are about judged again. Never rejects. */
  readonly readKeys: () => Promise<void>;
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
}

export class Fleet {
  readonly verbs: AgentVerbs;
  readonly homeAssistant: HomeAssistant;
  /** undefined: none are taken. */
  readonly commands: Commands | undefined;
  readonly #summary: ReturnType<typeof buildSummary>;

  constructor(private readonly parts: FleetParts) {
    const { clock, log, version, config, identity, seq, stateStore, runStore, runtime, session, remote, policy, kubelet, nodeStatus } =
      parts;
    const { nodeName, bootId } = identity;
    const boot = () => identity.boot();
    this.#summary = buildSummary({
      ...{ clock, log, nodeName, session, heartbeatSeconds: parts.heartbeatSeconds },
      stamp: () => ({ boot: boot(), seq: seq() }),
      status: () => kubelet.status,
      conditions: () => nodeStatus.conditions(),
      stats: () => parts.stats,
      nodeUse: () => kubelet.resources.usage().node(),
      temperature: () => nodeStatus.temperature(),
      quiet: () => config()['mqtt.profile'] === 'quiet',
      sys: '/sys',
    });
    this.homeAssistant = buildHomeAssistant({
      ...{ clock, log, random: Math.random, store: stateStore, nodeName, config: config(), event: parts.event },
      agentVersion: version,
      heartbeatSeconds: parts.heartbeatSeconds,
      session,
      pods: () => kubelet.pods.list(),
      board: () => nodeStatus.boardFacts(),
      allowsVerb: (verb) => this.commands !== undefined && allowsVerb(policy.policy('mqtt'), verb),
    });
    this.commands =
      remote.source === undefined
        ? undefined
        : buildCommands({
            ...{ clock, log, nodeName, bootId, boot, seq, store: runStore, config: config(), policy, view: parts.view },
            session: () => session,
            event: (subject, type, reason, message) => kubelet.events.event(subject, type, reason, message),
          });
    this.verbs = new AgentVerbs({
      ...{ clock, log, runStore, nodeName, runtime, bootId, boot, config },
      kubelet: () => kubelet,
      readKeys: parts.readKeys,
      forgetLost: async () => {
        const lost = kubelet.config.checkpoint() === 'lost';
        if (lost) await kubelet.config.forgetLost();
        return lost;
      },
      ...(config()['mqtt.servers'].length > 0 && {
        broker: {
          resync: () => session.resync(),
          readAgain: () => remote.source?.readAgain(),
          describe: () => ({ connected: session.connected(), conditions: session.conditions(), ...session.counters() }),
          forgetAll: () => this.#forgetAll(),
          leave: async () => {
            await this.homeAssistant.remove();
            await session.forget();
          },
        },
      }),
    });
  }

  async load(): Promise<void> {
    await Promise.all([this.verbs.load(), this.homeAssistant.load()]);
  }

  /** The kubelet runs. */
  start(): void {
    this.#summary.start();
  }

  /** What is desired is known and has been told. */
  ready(): void {
    this.#summary.ready();
    this.homeAssistant.ready();
  }

  heartbeat(): void {
    this.#summary.heartbeat();
  }

  /** Something of what is told may be another thing: pods, conditions, what commands may do. */
  changed(): void {
    this.#summary.changed();
    this.homeAssistant.changed();
  }

  retell(): void {
    this.#summary.retell();
  }

  async stop(): Promise<void> {
    this.#summary.stop();
    await Promise.all([this.commands?.stop(), this.verbs.stop(), this.homeAssistant.stop()]);
  }

  async #forgetAll(): Promise<number> {
    const { config } = this.parts.kubelet;
    const count = config.view().objects.filter((o) => o.winner?.source.startsWith('mqtt:') === true).length;
    await config.forgetRemote();
    return count;
  }
}
