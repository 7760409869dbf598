// pure
/** NodeOnline as the session writes and reads it: birth, heartbeat, will and farewell are one payload in four states. */

import type { NodeOnline } from '../api/payloads.ts';
import { isPlain, type Plain } from '../api/plain.ts';

export interface OnlineFacts {
  readonly node: string;
  readonly machine: string;
  readonly bootID: string;
  readonly session: number;
  readonly heartbeatSeconds: number;
  readonly agentVersion: string;
  readonly clockSynced: boolean;
  readonly boot: number;
  readonly seq: number;
}

const contractVersion = 1;

export function onlinePayload(state: NodeOnline['state'], f: OnlineFacts): string {
  const payload: NodeOnline = {
    apiVersion: 'podsched.dev/v1',
    kind: 'NodeOnline',
    node: f.node,
    state,
    machine: f.machine,
    bootID: f.bootID,
    session: f.session,
    heartbeatSeconds: f.heartbeatSeconds,
    agentVersion: f.agentVersion,
    contract: contractVersion,
    clockSynced: f.clockSynced,
    boot: f.boot,
    seq: f.seq,
  };
  return JSON.stringify(payload);
}

/** What the session needs of a heard NodeOnline; undefined for anything else. Every field but state and machine may be missing. */
export type HeardOnline = Pick<NodeOnline, 'state' | 'machine'> &
  Partial<Pick<NodeOnline, 'bootID' | 'session' | 'heartbeatSeconds' | 'boot'>>;

/** What any node writes of itself; a stranger's text reaches neither log nor condition. */
const machineId = /^[\w.-]{1,64}$/;
const longestHeartbeatSeconds = 86_400;
const greatestBoot = 1e12;

export function parseOnline(payload: Uint8Array): HeardOnline | undefined {
  const o = parseObject(payload);
  if (o === undefined || typeof o.machine !== 'string' || !machineId.test(o.machine)) return undefined;
  const { state, machine } = o;
  if (state !== 'online' && state !== 'offline' && state !== 'lost' && state !== 'duplicate') return undefined;
  return {
    state,
    machine,
    ...(typeof o.bootID === 'string' && { bootID: o.bootID }),
    ...(typeof o.session === 'number' && { session: o.session }),
    // who waits for twice that long must not wait for ever
    ...(isWithin(o.heartbeatSeconds, longestHeartbeatSeconds) && { heartbeatSeconds: o.heartbeatSeconds }),
    // our own counter may go on after it
    ...(isWithin(o.boot, greatestBoot) && Number.isInteger(o.boot) && { boot: o.boot }),
  };
}

const isWithin = (n: unknown, most: number): n is number => typeof n === 'number' && n > 0 && n <= most;

/** What a NodeOnline on the own topic means to this node. */
export type OnlineVerdict =
  /** Our own birth or heartbeat has come back: the broker takes our writes. */
  | 'echo'
  /** It says lost or offline, and we are here: say online again. */
  | 'sayAgain'
  /** Another machine was online under this name once. */
  | 'otherOnce'
  /** Another machine is online under this name now. */
  | 'otherLive'
  | 'nothing';

export interface OnlineView {
  readonly machine: string;
  readonly session: number;
  /** We have taken the name and say online. */
  readonly normal: boolean;
  /** What arrives now was sent now: a resumed session first brings what was queued for us, up to our own echo. */
  readonly live: boolean;
}

export function judgeOnline(heard: HeardOnline, retain: boolean, own: OnlineView): OnlineVerdict {
  const mine = heard.machine === own.machine;
  switch (heard.state) {
    case 'online':
      if (mine) return heard.session === own.session ? 'echo' : 'nothing';
      if (retain) return 'otherOnce';
      return own.live ? 'otherLive' : 'nothing';
    case 'offline':
    case 'lost':
      // the retained one is what our birth is about to replace
      return own.normal && !retain ? 'sayAgain' : 'nothing';
    case 'duplicate':
      return 'nothing';
  }
}

/** A JSON object from the wire; undefined for whatever else may lie there. */
export function parseObject(payload: Uint8Array | string): Plain | undefined {
  try {
    const value: unknown = JSON.parse(typeof payload === 'string' ? payload : new TextDecoder().decode(payload));
    return isPlain(value) ? value : undefined;
  } catch {
    return undefined; // not JSON: somebody else's
  }
}
