/**
 * The wiring's half for what a person may do to a pod: which room each act is asked of. Owns nothing but who was asked to be restarted, which is
 * kuberuntime/'s. kubelet.ts hands over what only it knows.
 */
import type { KeyText, PodUid } from './api/objects.ts';
import type { Config } from './config/manager.ts';
import type { RuntimePodStatus } from './container/words.ts';
import type { RuntimeSide } from './kubeletRuntime.ts';
import { Restarts } from './kuberuntime/restarts.ts';
import type { PodActDeps } from './operations/podActs.ts';
import type { Completions } from './pod/completions.ts';
import type { PodManager } from './pod/manager.ts';
import type { StatusManager } from './status/manager.ts';
import type { Updates } from './updates/manager.ts';

/** Functions, since most of them are built later. */
export interface VerbParts {
  readonly pods: PodManager;
  readonly config: () => Config;
  readonly completions: () => Completions;
  readonly runtime: () => RuntimeSide;
  readonly status: () => StatusManager;
  readonly statusOf: (uid: PodUid) => RuntimePodStatus | undefined;
  readonly updates: () => Updates;
  readonly wake: (uids: readonly PodUid[]) => void;
  /** What is told of these is another thing. */
  readonly mark: (keys: readonly KeyText[]) => void;
}

export class VerbSide {
  readonly restarts: Restarts;
  /** For operations/podActs.ts. */
  readonly podActs: PodActDeps;

  constructor(parts: VerbParts) {
    const { pods, config, completions, runtime, status, statusOf, updates, wake, mark } = parts;
    this.restarts = new Restarts({
      backoff: { delete: (key) => runtime().backoff.delete(key) },
      desired: (uid) => pods.get(uid),
      statusOf,
      wake: (uid) => wake([uid]),
    });
    const told = async <T>(key: KeyText, act: Promise<T>): Promise<T> => {
      const result = await act;
      mark([key]);
      return result;
    };
    this.podActs = {
      pods: () => status().whole(),
      sync: () => status().sync(),
      isWanted: (key) => config().wanted(key) !== undefined,
      isStopped: (key) => updates().stops.has(key),
      instance: (key) => updates().stops.sent(key)?.uid,
      restart: (uid, containers) => this.restarts.ask(uid, containers),
      renew: async (uid, key) => {
        // first: a new instance whose work has a record would not run
        await completions().forget(key);
        await config().renewInstance(uid);
      },
      stop: (key) => told(key, updates().stopPod(key)),
      start: (key) => told(key, updates().startPod(key)),
      hold: (key) => updates().hold(key),
      release: (key) => updates().release(key),
      rollBack: (key) => updates().turnBack(key),
    };
  }
}

/** The instance of a pod, as the sources have it: stopped ones too. Nothing happens when it has none yet. Rejects when it cannot be stored. */
export async function renewKey(config: Config, key: KeyText): Promise<void> {
  const uid = config.view().objects.find((o) => o.key === key)?.uid;
  if (uid !== undefined) await config.renewInstance(uid);
}
