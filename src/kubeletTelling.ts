/**
 * The wiring's half that tells of objects: the one answer per object and per file, and the moment from which what nobody told is a ghost.
 * Owns that moment; what is told is status/'s.
 */
import type { DesiredPod } from './api/desired.ts';
import type { KeyText, PodUid } from './api/objects.ts';
import type { Config } from './config/manager.ts';
import { splitKey } from './config/view.ts';
import type { RuntimePodStatus } from './container/words.ts';
import type { Instances } from './instances.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import type { RuntimeState } from './node/runtimeState.ts';
import { predecessorsOf } from './pleg/adoption.ts';
import type { Pleg } from './pleg/pleg.ts';
import type { PodWorkers } from './pod/workers.ts';
import type { StatusManager } from './status/manager.ts';
import type { LivePod } from './status/sync.ts';
import { Telling } from './telling.ts';
import type { Stops } from './updates/stops.ts';
import { describeError } from './world/log.ts';

export interface TellingParts {
  readonly config: Config;
  readonly pleg: Pleg;
  readonly workers: PodWorkers;
  readonly instances: Instances;
  readonly status: StatusManager;
  readonly runtimeState: RuntimeState;
  readonly statusOf: (uid: PodUid) => RuntimePodStatus | undefined;
  /** What is desired is known, and the runtime was listed. */
  readonly settled: () => boolean;
  readonly stops: Pick<Stops, 'told'>;
}

export class TellSide extends Telling {
  #ready = false;

  constructor(
    private readonly world: KubeletWorld,
    private readonly parts: TellingParts,
  ) {
    const { config, instances, status, runtimeState, stops } = parts;
    super({
      view: () => config.view(),
      instance: (key) => instances.byKey(key),
      live: (pod) => this.#live(pod),
      isUnseen: (pod) => !runtimeState.asked || (runtimeState.down() === undefined && this.#isUnseen(pod)),
      setSync: (key, body) => status.setSync(key, body && stops.told(body)),
      setFile: (file, body) => status.setFile(file, body),
    });
  }

  /** A pod that only a lost checkpoint knew runs on, or does not any more. */
  tellLost(key: KeyText, lost: boolean): void {
    if (!lost) {
      this.mark([key]);
      return;
    }
    const { kind, namespace, name } = splitKey(key);
    const message = 'it runs on: what was accepted of it could not be read, and its source has not spoken yet';
    const body = { apiVersion: 'podsched.dev/v1', kind: 'SyncStatus', object: { kind, namespace, name }, sources: [] } as const;
    this.parts.status.setSync({ kind, namespace, name }, { ...body, phase: 'Waiting', reason: 'CheckpointLost', message });
  }

  /** Ghosts may be cleared when what is desired is known and has been told: a topic must not vanish for a moment. */
  checkReady(): void {
    const { settled, instances, workers, status } = this.parts;
    if (this.#ready || !settled()) return;
    if (instances.uids().some((uid) => !instances.wasTold(uid) && workers.state(uid) !== 'waiting')) return;
    this.#ready = true;
    // what was set is told when it is stored: only then is the rest a ghost
    status.flush().then(
      () => this.world.broker.setReady(),
      (e) => this.world.log.warn({ error: describeError(e) }, 'statuses cannot be stored'),
    );
  }

  /** Not told in this run, and its worker waits for nobody but the first look at the runtime. */
  #isUnseen(pod: DesiredPod | undefined): boolean {
    const { pleg, instances, workers } = this.parts;
    if (pod === undefined) return !pleg.listed();
    if (instances.wasTold(pod.uid)) return false;
    return !pleg.listed() || (workers.state(pod.uid) === 'waiting' && predecessorsOf(pleg.pods(), pod).length === 0);
  }

  #live(pod: DesiredPod): LivePod {
    const { workers, status, statusOf, runtimeState, instances } = this.parts;
    const seconds = instances.secondsToRetry(pod.uid) ?? 0;
    return {
      state: workers.state(pod.uid),
      status: status.get(pod.uid),
      running: statusOf(pod.uid) === undefined ? undefined : { revision: pod.revision, uid: pod.uid },
      blocked: status.blocked(pod.uid),
      runtimeDown: runtimeState.down(),
      networkNotReady: pod.pod.spec.hostNetwork === true ? undefined : runtimeState.networkError(),
      nextRetrySeconds: seconds > 0 ? seconds : undefined,
    };
  }
}
