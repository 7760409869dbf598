// pure
/**
 * The device message of Home Assistant's MQTT discovery for one node: what its entities are and on which of our topics they live. Keys and
 * their short forms are Home Assistant's documented ones (integrations/mqtt, device discovery payload). Unique ids are made of the node's and
 * the pods' names alone, so that an entity keeps its history when a board, a revision or a restart changes everything else.
 */
import { commandTopic, maxRetainedBytes, nodeTopics } from '../api/topics.ts';
import type { Verb } from '../api/verbs.ts';

export type Platform = 'binary_sensor' | 'sensor' | 'button';

/** A component: its platform, and what else it has; nothing else: it is to be removed. */
export interface Component {
  readonly p: Platform;
  readonly [key: string]: unknown;
}

export interface DiscoveryFacts {
  /** Of our topics: `podsched/v1`. */
  readonly prefix: string;
  readonly node: string;
  readonly agentVersion: string;
  readonly model?: string;
  readonly serial?: string;
  readonly heartbeatSeconds: number;
  /** The summary is told on change only: it does not grow old. */
  readonly quiet: boolean;
  readonly hasTemperature: boolean;
  /** The board tells when its supply is too low. */
  readonly hasPower: boolean;
  /** Those with the label, in any order. */
  readonly pods: readonly { readonly namespace: string; readonly name: string }[];
  /** Whether commands over MQTT may do this. */
  readonly allowsVerb: (verb: Verb) => boolean;
}

/** On a Pod: it has entities of its own. */
export const haLabel = 'podsched.dev/ha';
export const maxComponents = 40;

export interface Discovery {
  /** By component id. */
  readonly components: Readonly<Record<string, Component>>;
  /** What had no room, in words: `pod default/web`. */
  readonly leftOut: readonly string[];
  readonly payload: string;
}

/** `gone`: announced before and no more, by component id; at most as many as there is room for. */
export function discovery(f: DiscoveryFacts, gone: Readonly<Record<string, Platform>>): Discovery {
  const components: Record<string, Component> = nodeComponents(f);
  const leftOut: string[] = [];
  const pods = [...f.pods].sort((a, b) => (podKey(a) < podKey(b) ? -1 : 1));
  const fits = (more: Readonly<Record<string, Component>>): boolean => {
    const all = { ...components, ...more };
    return Object.keys(all).length <= maxComponents && bytes(payloadOf(f, all)) <= maxRetainedBytes;
  };
  for (const pod of pods) {
    // a pod whose button has no room still has its sensor; one without room for either is named
    const sensor = podSensor(f, pod);
    const button = f.allowsVerb('restart') ? podButton(f, pod) : {};
    if (fits({ ...sensor, ...button })) Object.assign(components, sensor, button);
    else if (fits(sensor)) {
      Object.assign(components, sensor);
      leftOut.push(`restart of pod ${podKey(pod)}`);
    } else leftOut.push(`pod ${podKey(pod)}`);
  }
  for (const [id, p] of Object.entries(gone)) if (components[id] === undefined && fits({ [id]: { p } })) components[id] = { p };
  return { components, leftOut, payload: payloadOf(f, components) };
}

const bytes = (text: string): number => new TextEncoder().encode(text).length;
const podKey = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string => `${namespace}/${name}`;

const payloadOf = (f: DiscoveryFacts, cmps: Readonly<Record<string, Component>>): string =>
  JSON.stringify({
    dev: {
      ids: [`podsched-${f.node}`],
      name: f.node,
      ...(f.model !== undefined && { mdl: f.model, ...(f.model.startsWith('Raspberry Pi') && { mf: 'Raspberry Pi' }) }),
      ...(f.serial !== undefined && { sn: f.serial }),
      sw: `podsched ${f.agentVersion}`,
    },
    origin: { name: 'podsched', sw: f.agentVersion },
    qos: 1,
    cmps,
  });

/** Words of a template that is true for a condition that stands in `v1` shapes. */
const hasCondition = (type: string): string =>
  `value_json.status.conditions | default([]) | selectattr('type', 'eq', '${type}') | selectattr('status', 'eq', 'True') | list | length > 0`;
// a cleared topic has no JSON
const valueIn = (what: string): string => `{{ ${what} if value_json is defined else none }}`;
const attributes = (what: string): string => `{{ (${what} if value_json is defined else {}) | tojson }}`;
const onOff = (test: string): string => `{{ 'ON' if value_json is defined and ${test} else 'OFF' }}`;
const isOnline = "value_json is defined and value_json.state == 'online'";

function nodeComponents(f: DiscoveryFacts): Record<string, Component> {
  const topics = nodeTopics(f.prefix, f.node);
  const ofNode = (id: string, name: string) => ({ name, uniq_id: uniqueId(f, id), ...availability(f) });
  // a summary that did not come for three heartbeats says nothing any more
  const ages = f.quiet ? {} : { exp_aft: 3 * f.heartbeatSeconds };
  const summary = { stat_t: topics.summary, ...ages };
  return {
    connectivity: {
      p: 'binary_sensor',
      name: 'Connectivity',
      uniq_id: uniqueId(f, 'connectivity'),
      // it is itself what tells whether the others are there
      dev_cla: 'connectivity',
      ent_cat: 'diagnostic',
      stat_t: topics.online,
      val_tpl: `{{ 'ON' if ${isOnline} else 'OFF' }}`,
      exp_aft: 3 * f.heartbeatSeconds,
    },
    pods_ready: {
      p: 'sensor',
      ...ofNode('pods_ready', 'Pods ready'),
      ...summary,
      val_tpl: valueIn('value_json.pods.ready'),
      json_attr_t: topics.summary,
      json_attr_tpl: attributes('value_json.pods'),
      stat_cla: 'measurement',
    },
    problem: {
      p: 'binary_sensor',
      ...ofNode('problem', 'Problem'),
      ...summary,
      dev_cla: 'problem',
      val_tpl: onOff('value_json.alerts | length > 0'),
      json_attr_t: topics.summary,
      json_attr_tpl: attributes("{'alerts': value_json.alerts}"),
    },
    ...(f.hasTemperature && {
      cpu_temperature: {
        p: 'sensor',
        ...ofNode('cpu_temperature', 'CPU temperature'),
        ...summary,
        dev_cla: 'temperature',
        ent_cat: 'diagnostic',
        stat_cla: 'measurement',
        unit_of_meas: '°C',
        val_tpl: valueIn('value_json.temperatureCelsius | default(none)'),
      } as const,
    }),
    ...(f.hasPower && {
      under_voltage: {
        p: 'binary_sensor',
        ...ofNode('under_voltage', 'Undervoltage'),
        stat_t: topics.info,
        dev_cla: 'problem',
        ent_cat: 'diagnostic',
        val_tpl: onOff(hasCondition('UnderVoltage')),
      } as const,
    }),
    ...button(f, 'resync', 'resync', 'Resync', undefined),
    ...button(f, 'identify', 'identify', 'Identify', undefined),
  };
}

const podSensor = (f: DiscoveryFacts, pod: DiscoveryFacts['pods'][number]): Record<string, Component> => {
  const topic = nodeTopics(f.prefix, f.node).pod(pod.namespace, pod.name);
  const id = podId(pod);
  return {
    [id]: {
      p: 'binary_sensor',
      name: `Pod ${podKey(pod)}`,
      uniq_id: uniqueId(f, id),
      ...availability(f),
      dev_cla: 'running',
      stat_t: topic,
      val_tpl: onOff(hasCondition('Ready')),
      json_attr_t: topic,
      json_attr_tpl: attributes("{'phase': value_json.status.phase}"),
    },
  };
};

const podButton = (f: DiscoveryFacts, pod: DiscoveryFacts['pods'][number]): Record<string, Component> =>
  button(f, `${podId(pod)}_restart`, 'restart', `Restart ${podKey(pod)}`, { namespace: pod.namespace, pod: pod.name });

/** Nothing where the verb is not allowed: a button that is always denied is no button. */
function button(
  f: DiscoveryFacts,
  id: string,
  verb: 'resync' | 'identify' | 'restart',
  name: string,
  target: { readonly namespace: string; readonly pod: string } | undefined,
): Record<string, Component> {
  if (!f.allowsVerb(verb)) return {};
  return {
    [id]: {
      p: 'button',
      name,
      uniq_id: uniqueId(f, id),
      ...availability(f),
      ...(verb !== 'resync' && { dev_cla: verb }),
      ent_cat: verb === 'identify' ? 'diagnostic' : 'config',
      cmd_t: commandTopic(f.prefix, f.node, verb),
      pl_prs: JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'Command', ...(target && { target }) }),
    },
  };
}

/** `lost` and `duplicate` are no availability either, and a cleared topic has no JSON. */
const availability = (f: DiscoveryFacts) => ({
  avty: [{ t: nodeTopics(f.prefix, f.node).online, val_tpl: `{{ 'online' if ${isOnline} else 'offline' }}` }],
});

/** `_` cannot stand in a name of Kubernetes, so no two pods have one id; a dot would be read as the bounds of an entity's name. */
const podId = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `pod_${namespace}_${name.replaceAll('.', '__')}`;
const uniqueId = (f: DiscoveryFacts, id: string): string => `podsched_${f.node}_${id}`;
