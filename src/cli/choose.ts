// pure
/**
 * Which configuration runs: at the start the new one, or the last good one when the new one is wrong, or empty where a good one is
 * stored; at SIGHUP what may change while running.
 */
import { configurationKeys, type PodschedConfiguration } from '../api/configuration.ts';
import { problemText } from '../api/problems.ts';
import type { NodeCondition } from '../operations/agentView.ts';
import type { LoadedOptions, Settings } from '../options.ts';

/** What is stored of a configuration that ran: what the file set, and what flags and environment set. */
export interface LastGood {
  readonly file: Settings;
  readonly overrides: Settings;
}

export type Choice =
  | { readonly use: 'new'; readonly config: PodschedConfiguration; readonly keep: LastGood; readonly conditions: readonly NodeCondition[] }
  | {
      readonly use: 'lastGood';
      readonly config: PodschedConfiguration;
      readonly why: readonly string[];
      readonly conditions: readonly NodeCondition[];
    }
  | { readonly use: 'none'; readonly why: readonly string[] };

const isEmptied = (loaded: LoadedOptions, good: Settings | undefined): boolean =>
  loaded.empty && good !== undefined && Object.keys(good).length > 0;

/**
 * `lastGood` are the ways to make a configuration of what is stored, the best first; `stored` is what it was. An empty file is a
 * choice only where nothing else was chosen before: power cuts leave empty files.
 */
export function chooseConfiguration(loaded: LoadedOptions, stored: LastGood | undefined, lastGood: readonly LoadedOptions[]): Choice {
  const emptied = isEmptied(loaded, stored?.file);
  if (loaded.config !== undefined && !emptied) {
    return { use: 'new', config: loaded.config, keep: { file: loaded.fileSettings, overrides: loaded.overrides }, conditions: [] };
  }
  const why = whyNot(loaded, emptied);
  const good = lastGood.find((o) => o.config !== undefined)?.config;
  if (good === undefined) return { use: 'none', why };
  return { use: 'lastGood', config: good, why, conditions: [invalid(why, 'the last good configuration runs')] };
}

export type Reload =
  | {
      readonly ok: true;
      readonly config: PodschedConfiguration;
      readonly keep: LastGood;
      /** Keys that wait for a restart. */
      readonly waiting: readonly string[];
      readonly conditions: readonly NodeCondition[];
    }
  | { readonly ok: false; readonly why: readonly string[]; readonly conditions: readonly NodeCondition[] };

/** What SIGHUP does: live keys change, others wait, a wrong file changes nothing. */
export function planReload(running: PodschedConfiguration, good: LastGood, loaded: LoadedOptions): Reload {
  const emptied = isEmptied(loaded, good.file);
  const next = loaded.config;
  if (next === undefined || emptied) {
    const why = whyNot(loaded, emptied);
    return { ok: false, why, conditions: [invalid(why, 'nothing was changed')] };
  }
  const changed = Object.keys(configurationKeys).filter((path) => JSON.stringify(running[path]) !== JSON.stringify(next[path]));
  const live = changed.filter((path) => configurationKeys[path]?.live === true);
  const waiting = changed.filter((path) => configurationKeys[path]?.live !== true && configurationKeys[path]?.later !== true);
  return {
    ok: true,
    config: { ...running, ...Object.fromEntries(live.map((path) => [path, next[path]])) },
    keep: { file: loaded.fileSettings, overrides: loaded.overrides },
    waiting,
    conditions: waiting.length === 0 ? [] : [restartNeeded(waiting)],
  };
}

const emptyText =
  'the configuration file is empty or gone, and a good one is stored; to go back to the defaults, write only apiVersion and kind into it';

const whyNot = (loaded: LoadedOptions, emptied: boolean): string[] =>
  loaded.problems.length > 0 || !emptied ? loaded.problems.map((p) => problemText(p)) : [emptyText];

function invalid(why: readonly string[], consequence: string): NodeCondition {
  const more = why.length > 1 ? ` (and ${why.length - 1} more)` : '';
  const message = `${consequence}: ${why[0] ?? 'the configuration is wrong'}${more}`;
  return { type: 'ConfigurationInvalid', status: 'True', reason: 'ConfigurationInvalid', message };
}

const restartNeeded = (waiting: readonly string[]): NodeCondition => ({
  type: 'RestartNeeded',
  status: 'True',
  reason: 'RestartNeeded',
  message: `changed and waiting for a restart of the agent: ${waiting.join(', ')}`,
});
