/**
 * Restarting containers whose ConfigMaps or Secrets have changed, for pods with `podsched.dev/restart-on-change: "true"` (behaviour 13).
 *
 * Owns: the node's key for the marks on containers (stateDir, 0600, made when the first pod asks), and, for containers whose mark does not
 * say what it should, what they are compared with instead (runDir: a container does not outlive the boot, and losing it is no error).
 * A container is compared with what it was made with. One without a mark, or with a mark of a lost key or of another release, is taken as it
 * is now; one whose pod had not the annotation for a while too, so that the annotation's coming restarts nothing.
 * Never: asks for a restart while what the container needs is missing or broken (it could not start again); looks at containers that ended;
 * reads, writes or hashes anything for pods without the annotation.
 */
import { randomBytes } from 'node:crypto';
import {
  absentHash,
  configHashAnnotation,
  contentHash,
  hasChanged,
  isUsable,
  type Mark,
  markText,
  type ObjectUse,
  readMark,
  useId,
  usesOf,
  wantsRestartOnChange,
} from '../api/configHash.ts';
import type { DesiredPod } from '../api/desired.ts';
import type { ObjectLookup } from '../api/references.ts';
import { isSidecar } from '../api/resources.ts';
import type { ConfigMap, Container, EphemeralContainer, Secret } from '../api/v1.ts';
import type { ContainerId, ContainerStatus, RuntimePodStatus } from '../container/words.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { environmentSources, keyValue, valuesFrom } from './envObjects.ts';

const keyEntry = 'config-hash-key';
const prefix = 'config-seen/';
const keyBytes = 32;
/** The pod of this container has not the annotation: from its coming on it is compared with what is then. */
const unasked = 'unasked';

export interface RestartOnChangeDeps {
  readonly log: Log;
  readonly objects: ObjectLookup;
  /** stateDir. */
  readonly stateStore: Store;
  /** runDir. */
  readonly runStore: Store;
}

export class RestartOnChange {
  #key: Uint8Array | undefined;
  #asking: Promise<Uint8Array> | undefined;
  /** By container id: a mark that counts instead of its own, or `unasked`. */
  #instead = new Map<string, string>();
  /** Large objects are hashed once, not at each look. */
  #hashes = new WeakMap<ConfigMap | Secret, Map<string, string>>();

  constructor(private readonly deps: RestartOnChangeDeps) {}

  /** Reads what an earlier agent of this boot left. Never rejects: what cannot be read is taken anew. */
  async load(): Promise<void> {
    const { runStore, log } = this.deps;
    try {
      for (const entry of await runStore.list(prefix)) {
        const text = await runStore.get(entry);
        if (typeof text === 'string') this.#instead.set(entry.slice(prefix.length), text);
      }
    } catch (e) {
      log.warn({ error: describeError(e) }, 'what containers were compared with cannot be read');
    }
  }

  /** What is written on a container that is about to be made. Ask before its volumes are mounted: then a change in between is not missed. */
  async annotationsFor(desired: DesiredPod, container: Container | EphemeralContainer): Promise<Readonly<Record<string, string>>> {
    if (!wantsRestartOnChange(desired.pod)) return {};
    const uses = usesOf(desired.pod, container);
    if (uses.length === 0) return {};
    const key = await this.#keyOfNode();
    return { [configHashAnnotation]: markText(key, this.#now(key, desired, uses)) };
  }

  /** Before the pod's containers are judged. Costs nothing for pods that do not ask for it. Never rejects. */
  async review(desired: DesiredPod, status: RuntimePodStatus): Promise<void> {
    const wanted = wantsRestartOnChange(desired.pod);
    for (const record of status.containers) {
      if (record.state !== 'running') continue;
      if (!wanted) await this.#unasked(record);
      else await this.#settleMark(desired, record);
    }
  }

  /** Whether a running container is to be made anew for what has changed. After `review`. */
  changed(desired: DesiredPod, record: ContainerStatus): boolean {
    const [key, container] = [this.#key, restartable(desired, record.name)];
    if (key === undefined || container === undefined || !wantsRestartOnChange(desired.pod)) return false;
    const mark = this.#markOf(key, record);
    const uses = usesOf(desired.pod, container);
    return mark !== undefined && hasChanged(mark, this.#now(key, desired, uses)) && this.#canStart(desired, container, uses);
  }

  /** Forgets containers that the runtime has no more. */
  async retain(ids: ReadonlySet<string>): Promise<void> {
    for (const id of [...this.#instead.keys()].filter((i) => !ids.has(i))) {
      this.#instead.delete(id);
      await this.deps.runStore.remove(prefix + id);
    }
  }

  async #unasked({ id, annotations }: ContainerStatus): Promise<void> {
    const isMarked = annotations[configHashAnnotation] !== undefined || this.#instead.has(id);
    if (isMarked) await this.#set(id, unasked);
  }

  /** A mark that says nothing is replaced, and of an object that it does not know, as it is now, it takes note. */
  async #settleMark(desired: DesiredPod, record: ContainerStatus): Promise<void> {
    const container = restartable(desired, record.name);
    const uses = container === undefined ? [] : usesOf(desired.pod, container);
    if (uses.length === 0) return;
    const key = await this.#keyOfNode();
    const mark = this.#markOf(key, record) ?? new Map<string, string>();
    const unknown = [...this.#now(key, desired, uses)].filter(([id, hash]) => hash !== absentHash && !mark.has(id));
    if (unknown.length > 0) await this.#set(record.id, markText(key, new Map([...mark, ...unknown])));
  }

  #markOf(key: Uint8Array, { id, annotations }: ContainerStatus): Mark | undefined {
    return readMark(key, this.#instead.get(id) ?? annotations[configHashAnnotation]);
  }

  async #set(id: ContainerId, text: string): Promise<void> {
    if (this.#instead.get(id) === text) return;
    this.#instead.set(id, text);
    // in memory it holds as long as this agent lives
    await this.deps.runStore
      .put(prefix + id, text)
      .catch((e) => this.deps.log.warn({ container: id, error: describeError(e) }, 'what a container is compared with cannot be stored'));
  }

  #now(key: Uint8Array, desired: DesiredPod, uses: readonly ObjectUse[]): Mark {
    return new Map(
      uses.map((use) => {
        const object = this.#object(desired, use);
        return [useId(use), object === undefined ? absentHash : this.#hash(key, use, object)];
      }),
    );
  }

  #hash(key: Uint8Array, use: ObjectUse, object: ConfigMap | Secret): string {
    const known = this.#hashes.get(object) ?? new Map<string, string>();
    this.#hashes.set(object, known);
    const which = use.what === 'all' ? 'all' : JSON.stringify([use.what, use.keys]);
    const hash = known.get(which) ?? contentHash(key, use, object);
    known.set(which, hash);
    return hash;
  }

  #object({ namespace, source }: DesiredPod, { kind, name }: ObjectUse): ConfigMap | Secret | undefined {
    const object = this.deps.objects(kind, namespace, name, source);
    return object === undefined || object.kind === 'Pod' ? undefined : object;
  }

  #canStart(desired: DesiredPod, container: Container, uses: readonly ObjectUse[]): boolean {
    if (!uses.every((use) => isUsable(use, this.#object(desired, use)))) return false;
    const sources = environmentSources(this.deps.objects, desired, container);
    try {
      for (const from of container.envFrom ?? []) valuesFrom(from, sources, desired.namespace);
      for (const { valueFrom } of container.env ?? []) if (valueFrom !== undefined) keyValue(valueFrom, sources, desired.namespace);
      return true;
    } catch {
      return false; // a value that no environment can hold: what runs goes on
    }
  }

  #keyOfNode(): Promise<Uint8Array> {
    this.#asking ??= this.#readKey();
    return this.#asking;
  }

  async #readKey(): Promise<Uint8Array> {
    const { stateStore, log } = this.deps;
    try {
      const stored = await stateStore.get(keyEntry);
      const bytes = typeof stored === 'string' ? Buffer.from(stored, 'base64') : undefined;
      if (bytes?.length === keyBytes) this.#key = bytes;
    } catch (e) {
      log.warn({ error: describeError(e) }, 'the key of the marks on containers cannot be read: a new one is made');
    }
    if (this.#key !== undefined) return this.#key;
    const key = randomBytes(keyBytes);
    this.#key = key;
    // for this agent it does without; the next one takes the containers as they are then
    await stateStore
      .put(keyEntry, key.toString('base64'))
      .catch((e) => log.warn({ error: describeError(e) }, 'the key of the marks on containers cannot be stored'));
    return key;
  }
}

/** An app container or a sidecar; undefined: an init container has done its work, and an ephemeral one starts once. */
function restartable({ pod }: DesiredPod, name: string): Container | undefined {
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter(isSidecar)].find((c) => c.name === name);
}
