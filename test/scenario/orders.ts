/**
 * What a world takes from its broker: desired state, commands, policy and keys, wired as agentRemote.ts, agentCommands.ts and agentVerbs.ts do it.
 * `settings` and `keys` may be others while an agent runs; `World.reload()` tells it so.
 */
import { buildCommands } from '../../src/agentCommands.ts';
import { buildRemote, type RemoteSide } from '../../src/agentRemote.ts';
import type { PodschedConfiguration } from '../../src/api/configuration.ts';
import type { BrokerSession } from '../../src/broker/session.ts';
import type { Kubelet } from '../../src/kubelet.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import { actOnNode } from '../../src/operations/nodeActs.ts';
import { listObjects } from '../../src/operations/objects.ts';
import { actOnPod } from '../../src/operations/podActs.ts';
import { loadOptions, type Settings } from '../../src/options.ts';
import type { TrustedKey } from '../../src/policy/dsse.ts';
import { Gatekeeper } from '../../src/policy/gatekeeper.ts';
import { readPolicy } from '../../src/policy/policy.ts';
import type { Commands } from '../../src/remote/commands.ts';
import type { Clock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import type { Store } from '../../src/world/store.ts';
import { agentView } from '../operations/view.ts';

export class Orders {
  keys: readonly TrustedKey[] = [];
  /** What of the windows another answers: logs and programs in containers need a machine. */
  view: Partial<AgentView> = {};
  #config: PodschedConfiguration;

  /** By dotted path, as the file has them. */
  constructor(settings: Settings = {}) {
    this.#config = read(settings);
  }

  set settings(settings: Settings) {
    this.#config = read(settings);
  }

  get config(): PodschedConfiguration {
    return this.#config;
  }
}

function read(settings: Settings): PodschedConfiguration {
  const { config, problems } = loadOptions({
    flags: {},
    env: {},
    settings: { 'mqtt.servers': ['mqtt://broker'], 'mqtt.insecure': true, ...settings },
  });
  if (config === undefined) throw new Error(JSON.stringify(problems));
  return config;
}

export interface OrderParts {
  readonly clock: Clock;
  readonly stateStore: Store;
  readonly runStore: Store;
  readonly nodeName: string;
  readonly nodeLabels: () => Readonly<Record<string, string>>;
  readonly bootId: string;
  readonly boot: () => number;
  readonly seq: () => number;
  readonly session: () => BrokerSession;
  readonly kubelet: () => Kubelet;
  /** The windows are open. */
  readonly started: () => boolean;
}

export interface OrderSide {
  readonly remote: RemoteSide;
  readonly gate: Gatekeeper;
  /** Those that are configured, with what `_config` says over them. */
  labels(): Readonly<Record<string, string>>;
  heartbeatSeconds(): number;
  settingsChanged(): void;
}

export function buildOrders(orders: Orders, parts: OrderParts): OrderSide {
  const { clock, stateStore, runStore, nodeName, bootId, boot, seq, session, kubelet, started } = parts;
  const settingsChanged = (): void => {
    kubelet().admission.again();
    remote.source?.settingsChanged();
    kubelet()
      .config.readFolder()
      .catch(() => {}); // a folder that is missing is told by itself
    session().heartbeatChanged();
  };
  const remote = buildRemote({
    ...{ clock, log: silentLog, store: stateStore, nodeName },
    config: () => ({ ...orders.config, nodeLabels: parts.nodeLabels() }),
    session,
    commands: () => commands,
    homeAssistant: () => undefined,
    configChanged: settingsChanged,
  });
  const policy = (of: 'file' | 'mqtt') => readPolicy(orders.config[`policy.${of}`], of);
  const gate = new Gatekeeper({
    policy,
    keys: () => orders.keys,
    receiver: () => ({ node: nodeName, groups: remote.source?.groups() ?? [] }),
    sealingKey: () => undefined,
  });
  const view: AgentView = agentView({
    nodeName,
    pods: () => kubelet().status.whole(),
    sync: () => kubelet().status.sync(),
    files: () => kubelet().status.files(),
    events: (filter) => kubelet().events.list(filter),
    objects: () => listObjects(kubelet().config.view(), (key) => kubelet().config.object(key), kubelet().pods.list()),
    act: (request) => actOnPod(request, kubelet().verbs.podActs),
    nodeAct: (request) =>
      actOnNode(request, {
        nodeName,
        readSources: async () => {
          remote.source?.readAgain();
          await kubelet().config.readFolder();
        },
        tellAll: () => {
          kubelet().status.retell();
          session().resync();
        },
        forgetLost: async () => false,
        blink: async () => ({ ok: false, code: 409, message: 'no light' }),
        decommission: async () => {
          const count = kubelet()
            .config.view()
            .objects.filter((o) => o.winner?.source.startsWith('mqtt:') === true).length;
          await kubelet().config.forgetRemote();
          clock.sleep(5_000).then(
            () => session().forget(),
            () => {},
          );
          return count;
        },
      }),
  });
  const commands: Commands = buildCommands({
    ...{ clock, log: silentLog, nodeName, bootId, boot, seq, store: runStore, config: orders.config, session },
    policy: { gate, policy },
    event: (subject, type, reason, message) => kubelet().events.event(subject, type, reason, message),
    view: () => (started() ? { ...view, ...orders.view } : undefined),
  });
  return {
    remote,
    gate,
    labels: () => ({ ...parts.nodeLabels(), ...remote.source?.config()?.labels }),
    heartbeatSeconds: () => remote.source?.config()?.heartbeatSeconds ?? 60,
    settingsChanged,
  };
}
