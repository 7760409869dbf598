/**
 * The wiring's half for what is wanted: the sources, and updates of running pods, which wait for their images, are held, or go back. Owns
 * nothing; the rooms config/ and updates/ do. kubelet.ts hands over what only it knows.
 */
import type { Admission } from './admission/manager.ts';
import type { DesiredPod, PodUpdate } from './api/desired.ts';
import { keyText, type PodUid } from './api/objects.ts';
import { Config, type ConfigDeps } from './config/manager.ts';
import { annotations, type RuntimePodStatus } from './container/words.ts';
import type { ImageManager } from './images/manager.ts';
import { platformProblem } from './images/platform.ts';
import { parseReference } from './images/reference.ts';
import type { RuntimeSide } from './kubeletRuntime.ts';
import type { StatusSide } from './kubeletStatus.ts';
import { renewKey } from './kubeletVerbs.ts';
import { configWorld, type KubeletSettings, type KubeletWorld } from './kubeletWorld.ts';
import { adoptableUid } from './pleg/adoption.ts';
import type { Pleg } from './pleg/pleg.ts';
import type { Completions } from './pod/completions.ts';
import { instanceState } from './pod/instanceState.ts';
import type { PodManager } from './pod/manager.ts';
import type { PodWorkers } from './pod/workers.ts';
import type { StatusManager } from './status/manager.ts';
import { Updates } from './updates/manager.ts';
import type { Standing } from './updates/needed.ts';
import { describeError } from './world/log.ts';

/** Functions, since most of them are built later. */
export interface UpdateParts {
  readonly pods: PodManager;
  readonly config: () => Config;
  readonly admission: () => Admission;
  readonly pleg: () => Pleg;
  readonly workers: () => PodWorkers;
  readonly completions: () => Completions;
  readonly runtime: () => RuntimeSide;
  readonly status: () => StatusManager;
  readonly images: () => ImageManager;
  readonly telling: () => StatusSide;
  readonly statusOf: (uid: PodUid) => RuntimePodStatus | undefined;
  /** What the sources want, without what is stopped. */
  readonly emit: (update: PodUpdate) => void;
}

export function buildUpdates({ clock, log, stateStore, runStore, images, nodePlatform }: KubeletWorld, parts: UpdateParts): Updates {
  const { config, status, statusOf } = parts;
  const standing = (instance: DesiredPod): Standing => {
    const state = parts.workers().state(instance.uid);
    if (state === 'terminating' || state === 'terminated' || state === 'finished' || parts.completions().has(instance)) return 'over';
    // nobody knows yet: it may run
    if (!parts.pleg().listed()) return 'runs';
    const containers = statusOf(instance.uid)?.containers ?? [];
    return containers.some((c) => c.state === 'running' || c.state === 'unknown') ? 'runs' : 'down';
  };
  return new Updates({
    ...{ clock, log, stateStore, runStore, standing },
    admit: (edits) => parts.admission().judgeEdits(edits),
    imageHere: async (image) => {
      const parsed = parseReference(image);
      const here = parsed.ok ? await images.imageStatus(parsed.image) : undefined;
      // one for another platform is as good as none: the image manager pulls it anew, and names what is wrong
      return here !== undefined && platformProblem(here.platform, nodePlatform) === undefined;
    },
    ensureImage: (desired, asker, signal) => parts.images().bring(desired, asker, signal),
    wanted: (key) => config().wanted(key),
    isGood: (key, revision) => config().isGood(key, revision),
    isElsewhere: (uid) => parts.admission().isElsewhere(uid),
    wayBack: (key, revision, byPerson) => config().wayBack(key, revision, byPerson),
    why: (key) => {
      const told = status()
        .sync()
        .find(({ object }) => object.kind === 'Pod' && keyText({ ...object, kind: 'Pod' }) === key);
      return told === undefined ? '' : `${told.reason}${told.message === '' ? '' : `: ${told.message}`}`;
    },
    giveUp: (key, revision, message, byPerson) => config().giveUp(key, revision, message, byPerson),
    tryAgain: (key) => config().tryAgain(key),
    markGood: (key, revision) => config().markGood(key, revision),
    renew: (key) => renewKey(config(), key),
    emit: parts.emit,
    judgeAgain: (keys) => config().retryBlocked(keys),
    isMadeOf: (desired) => {
      const { adoption } = parts.runtime();
      return desired.pod.spec.containers.every(({ name }) => {
        const newest = statusOf(desired.uid)?.containers.find((c) => c.name === name);
        const recorded = newest?.annotations[annotations.ourContainerHash];
        return newest !== undefined && adoption.sameHash(recorded ?? '', desired.containerHashes[name] ?? '', newest.id);
      });
    },
    event: (desired, type, reason, message) => parts.telling().event(desired, undefined, type, reason, message),
    failed: (e) => log.warn({ error: describeError(e) }, 'what an update asked for could not be stored'),
  });
}

/** The sources, with the updates between what they want and what is sent out. */
export function buildConfig(
  world: KubeletWorld,
  settings: KubeletSettings,
  { pods, config, pleg, workers, completions, telling, statusOf }: UpdateParts,
  updates: Updates,
  { changed }: Pick<ConfigDeps, 'changed'>,
): Config {
  return new Config({
    ...configWorld(world, settings),
    instanceState: (uid) => {
      const pod = pods.get(uid);
      return instanceState(pod, statusOf(uid), { worker: workers().state(uid), completed: completions().has(pod) });
    },
    runtimeUid: (key, podHash) => (pleg().listed() ? adoptableUid(pleg().pods(), key, podHash) : 'unknown'),
    judgeEdits: (edits) => updates.judge(edits),
    held: (key, wanted) => updates.heldBy(key, wanted),
    emit: (update) => updates.pass(update),
    changed: (keys) => {
      updates.objectsChanged(keys, { ready: config().ready(), known: (key) => config().has(key) });
      changed(keys);
    },
    event: ({ type, reason, message, object }) => telling().events.event(object, type, reason, message),
  });
}
