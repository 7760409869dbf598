/** What a rollout looks like on the broker: its own message, its objects, and what each node has made of them. Listens, and never writes. */

import { generationAnnotation, generationOf } from '../api/delivery.ts';
import type { Rollout } from '../api/messages.ts';
import { type KeyText, keyText } from '../api/objects.ts';
import type { SyncStatus } from '../api/payloads.ts';
import { rolloutAnnotation, takes } from '../api/rollout.ts';
import { nodeTopics, parseTopic, rolloutTopic } from '../api/topics.ts';
import { parseObject } from '../broker/online.ts';
import { sourceOf } from '../config/desiredTopics.ts';
import { readRollout } from '../config/rollouts.ts';
import type { BrokerMessage } from '../world/broker.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { Fleet } from './fleetView.ts';
import { annotationsOf, rawObject, signedPayload } from './rawObjects.ts';
import type { RemoteBroker } from './remoteBroker.ts';
import { type GateNode, type Progress, progressOf, type RolledObject, worstOf } from './rolloutGate.ts';

interface Told {
  readonly syncs: Map<KeyText, SyncStatus>;
  /** By pod: how often its containers were started again. */
  readonly restarts: Map<string, number>;
  progress: Progress;
  note?: string | undefined;
  readyAt?: number | undefined;
}

export class RolloutView {
  rollout: Rollout | undefined;
  /** Something has changed since the last look. */
  news = new AbortController();
  readonly fleet: Fleet;
  /** Names of nodes that have failed since this view looks, and how. */
  #failed = new Map<string, string>();
  #objects = new Map<string, RolledObject>();
  #nodes = new Map<string, Told>();

  private constructor(
    private readonly remote: Pick<RemoteBroker, 'prefix' | 'clock'>,
    readonly id: string,
  ) {
    this.fleet = new Fleet(remote.prefix, remote.clock);
  }

  /** Resolves when what is retained has been read. Rejects with `notFound` when there is no such rollout. */
  static async open(remote: RemoteBroker, id: string): Promise<RolloutView> {
    const view = new RolloutView(remote, id);
    const { prefix } = remote;
    const hear = (m: BrokerMessage): void => view.#heard(m);
    await remote.listenWhole([rolloutTopic(prefix, id), `${prefix}/desired/groups/+/+/+`, `${prefix}/desired/all/+/+`], hear);
    const own = nodeTopics(prefix, '+');
    await remote.listenWhole([own.online, own.info], hear);
    if (view.rollout === undefined) throw new CommandError(exitCodes.notFound, `there is no rollout ${JSON.stringify(id)} on this broker`);
    const keys = [...view.#objects.values()].map((o) => o.key);
    const pods = keys.filter((key) => key.kind === 'Pod');
    const filters = [...keys.map((key) => own.sync(key)), ...pods.map((key) => own.pod(key.namespace, key.name))];
    if (filters.length > 0) await remote.listenWhole([...new Set(filters)], hear);
    return view;
  }

  get objects(): readonly RolledObject[] {
    return [...this.#objects.values()];
  }

  /** Every node that has to do with it, by name. */
  nodes(): readonly GateNode[] {
    return [...this.#nodes]
      .map(([name, told]): GateNode => {
        const { progress, note, readyAt } = told;
        return {
          name,
          labels: this.fleet.labels(name),
          away: this.fleet.isAway(name),
          progress,
          ...(note !== undefined && { note }),
          ...(readyAt !== undefined && { readyAt }),
        };
      })
      .filter((node) => node.progress !== 'outside')
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Those of waves that are open, and how: what a node behind the gate refuses already is no failure of the rollout yet. */
  failures(): ReadonlyMap<string, string> {
    const { rollout } = this;
    if (rollout === undefined) return new Map();
    return new Map([...this.#failed].filter(([name]) => takes(rollout, { name, labels: this.fleet.labels(name) })));
  }

  #heard(message: BrokerMessage): void {
    const about = parseTopic(this.remote.prefix, message.topic);
    switch (about?.of) {
      case 'rollout':
        // what cannot be read is somebody's slip; what is cleared is gone
        if (about.id === this.id)
          this.rollout = message.payload.length === 0 ? undefined : (parseRollout(message.payload, this.id) ?? this.rollout);
        break;
      case 'desired':
        this.#heardObject(message);
        break;
      case 'online':
      case 'info':
        this.fleet.heard(message);
        break;
      case 'sync': {
        const { kind, namespace, name } = about;
        this.#heardSync(about.node, keyText({ kind, namespace, name }), parseObject(message.payload));
        break;
      }
      case 'pod':
        this.#heardPod(about.node, `${about.namespace}/${about.name}`, parseObject(message.payload));
        break;
      default:
        return;
    }
    this.news.abort();
  }

  #heardObject({ topic, payload }: BrokerMessage): void {
    const about = parseTopic(this.remote.prefix, topic);
    if (about?.of !== 'desired') return;
    const raw = payload.length === 0 ? undefined : rawObject(signedPayload(payload) ?? payload);
    const annotations = annotationsOf(raw);
    if (annotations[rolloutAnnotation] !== this.id) {
      this.#objects.delete(topic);
      return;
    }
    const { scope, kind, namespace, name } = about;
    this.#objects.set(topic, {
      key: { kind, namespace, name },
      source: sourceOf(scope),
      generation: generationOf(annotations[generationAnnotation]),
    });
    for (const node of this.#nodes.keys()) this.#judge(node);
  }

  #told(node: string): Told {
    const known = this.#nodes.get(node);
    if (known !== undefined) return known;
    const told: Told = { syncs: new Map(), restarts: new Map(), progress: 'outside' };
    this.#nodes.set(node, told);
    return told;
  }

  #heardSync(node: string, key: KeyText, payload: Readonly<Record<string, unknown>> | undefined): void {
    const { syncs } = this.#told(node);
    if (payload?.kind === 'SyncStatus' && Array.isArray(payload.sources)) syncs.set(key, payload as unknown as SyncStatus);
    else syncs.delete(key);
    this.#judge(node);
  }

  /** A restart too quick to be seen in the status still ends the time for which it has been ready. */
  #heardPod(node: string, pod: string, payload: Readonly<Record<string, unknown>> | undefined): void {
    const told = this.#told(node);
    const statuses = (payload?.status as { readonly containerStatuses?: unknown } | undefined)?.containerStatuses;
    const restarts = (Array.isArray(statuses) ? statuses : []).reduce((sum: number, c: { restartCount?: unknown } | null) => {
      const count = Number(c?.restartCount);
      return sum + (Number.isFinite(count) ? count : 0);
    }, 0);
    const before = told.restarts.get(pod);
    told.restarts.set(pod, restarts);
    if (before !== undefined && restarts > before && told.readyAt !== undefined) told.readyAt = this.remote.clock.monotonic();
  }

  #judge(node: string): void {
    const told = this.#told(node);
    const { progress, note } = worstOf(this.objects.map((object) => progressOf(told.syncs.get(keyText(object.key)), object)));
    if (progress !== 'ready') told.readyAt = undefined;
    else if (told.progress !== 'ready') told.readyAt = this.remote.clock.monotonic();
    told.progress = progress;
    told.note = note;
    if (progress === 'failed') this.#failed.set(node, note ?? '');
  }
}

/** A rollout with what only people and the gate need; undefined: it is none. */
export function parseRollout(payload: Uint8Array, id: string): Rollout | undefined {
  const value = parseObject(payload);
  const read = readRollout(value, id);
  if (!read.ok) return undefined;
  const count = (name: string): number | undefined => {
    const number = value?.[name];
    return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
  };
  const [bakeSeconds, abortAfterFailures] = [count('bakeSeconds'), count('abortAfterFailures')];
  const state = (['running', 'done', 'aborted'] as const).find((s) => s === value?.state);
  return {
    ...read.rollout,
    ...(bakeSeconds !== undefined && { bakeSeconds }),
    ...(abortAfterFailures !== undefined && abortAfterFailures > 0 && { abortAfterFailures }),
    ...(state !== undefined && { state }),
  };
}
