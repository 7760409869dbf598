/** What is wrong with the node, as its parts find it: one condition for each, under the node's own of `node/`. Owns nothing. */
import type { SessionCondition } from './broker/session.ts';
import type { Kubelet } from './kubelet.ts';
import type { NodeCondition } from './operations/agentView.ts';

interface Found {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

export interface ConditionParts {
  readonly kubelet: Kubelet;
  readonly images: () => readonly { readonly type: string; readonly message: string }[];
  readonly identity: () => readonly Found[];
  readonly session: () => readonly SessionCondition[];
  /** What further parts found. */
  readonly more: () => readonly Found[];
  /** Of the start itself. */
  readonly start: () => readonly NodeCondition[];
}

const bad = ({ type, reason, message }: Found): NodeCondition => ({ type, status: 'True', reason, message });
const named = (type: string, message: string | undefined): readonly Found[] =>
  message === undefined || message === '' ? [] : [{ type, reason: type, message }];

export function agentConditions({ kubelet, images, identity, session, more, start }: ConditionParts): NodeCondition[] {
  const { runtimeState } = kubelet;
  const down = runtimeState.down();
  const network = down === undefined ? runtimeState.networkError() : undefined;
  const { fault, degraded, insecure } = kubelet.config.view().folder;
  const filling = kubelet.images.gc.condition();
  const unwatched = [degraded, kubelet.resources.devices.condition()?.message].filter((text) => text !== undefined).join('; ');
  const found: readonly Found[] = [
    // not asked yet is no news: it would come and go at each start
    ...named('RuntimeDown', runtimeState.asked ? down : undefined),
    ...named('NetworkNotReady', network),
    ...(fault === undefined ? [] : [{ type: 'ManifestFolderUnreadable', reason: 'SourceUnreadable', message: fault }]),
    ...named('WatchDegraded', unwatched),
    ...named('InsecurePermissions', insecure),
    ...(filling === undefined ? [] : [filling]),
    ...(kubelet.resources.cm?.manager.nodeProblems() ?? []),
    ...images().map((c) => ({ ...c, reason: c.type })),
    ...identity(),
    ...session(),
    ...more(),
  ];
  return [...found.map(bad), ...start()];
}
