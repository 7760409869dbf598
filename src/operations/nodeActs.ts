/**
 * What a person may do to the node: have everything read and told again, find it by its light, take it out of the fleet. Owns nothing: each act
 * is asked of the rooms that know how.
 */
import { type Answered, refused } from './answered.ts';
import type { Done } from './podActs.ts';

export type NodeActRequest =
  /** `forgetLost`: what only a lost checkpoint keeps alive goes, too. */
  | { readonly act: 'resync'; readonly forgetLost?: boolean }
  /** For so long, in seconds. Left out: 10. */
  | { readonly act: 'identify'; readonly seconds?: number }
  /** `confirm`: the name of the node, so that nobody does it by a slip of the pen. */
  | { readonly act: 'decommission'; readonly confirm: string };

const nodeActs = ['resync', 'identify', 'decommission'] as const;

export interface NodeActDeps {
  readonly nodeName: string;
  /** Files and topics are read once more. Rejects with why the files cannot be read. */
  readonly readSources: () => Promise<void>;
  /** Everything that stands under the node's topics is told once more; nothing without a broker. */
  readonly tellAll: () => void;
  /** What only a lost checkpoint keeps may go. False: nothing was lost. */
  readonly forgetLost: () => Promise<boolean>;
  /** Resolves when the light blinks, to the light's name. */
  readonly blink: (seconds: number) => Promise<Answered<string>>;
  /**
   * Pods that came by topics end by their grace, what is stored of topics and under the node's own topics goes, and the broker is left; the
   * number of objects. undefined: there is no broker. Rejects when it cannot be stored or cleared.
   */
  readonly decommission: () => Promise<number | undefined>;
}

const defaultBlinkSeconds = 10;
const mostBlinkSeconds = 300;

const actOf = (path: string): (typeof nodeActs)[number] | undefined => nodeActs.find((act) => path === `/${act}`);

/** Whether the path is one of acts on the node. */
export const asksForNodeAct = (path: string): boolean => actOf(path) !== undefined;

/** The request of a path for which `asksForNodeAct`. */
export function nodeActRequest(path: string, query: string): Answered<NodeActRequest> {
  const act = actOf(path) ?? 'resync';
  const given = new URLSearchParams(query);
  const taken = { resync: 'forgetLost', identify: 'seconds', decommission: 'confirm' }[act];
  const other = [...given.keys()].find((name) => name !== taken);
  if (other !== undefined) return refused(400, `there is no ${other.slice(0, 50)}; ${act} takes ${taken}`);
  const text = given.get(taken);
  switch (act) {
    case 'resync':
      if (text !== null && text !== '1') return refused(400, 'forgetLost=1 is meant, or no forgetLost');
      return { ok: true, value: { act, ...(text !== null && { forgetLost: true }) } };
    case 'identify':
      return { ok: true, value: { act, ...(text !== null && { seconds: text.trim() === '' ? Number.NaN : Number(text) }) } };
    case 'decommission':
      return { ok: true, value: { act, confirm: text ?? '' } };
    default: {
      const never: never = act;
      return never;
    }
  }
}

/** Rejects when something cannot be stored or read. */
export async function actOnNode(request: NodeActRequest, deps: NodeActDeps): Promise<Answered<Done>> {
  const said = (message: string): Answered<Done> => ({ ok: true, value: { message } });
  switch (request.act) {
    case 'resync': {
      const forgot = request.forgetLost === true ? await deps.forgetLost() : undefined;
      await deps.readSources();
      deps.tellAll();
      const lost = forgot === undefined ? '' : forgot ? '; what was lost is forgotten' : '; nothing was lost';
      return said(`the sources were read, and everything is told again${lost}`);
    }
    case 'identify': {
      const { seconds = defaultBlinkSeconds } = request;
      if (!Number.isFinite(seconds) || seconds < 1 || seconds > mostBlinkSeconds)
        return refused(400, `seconds: expected a number from 1 to ${mostBlinkSeconds}`);
      const light = await deps.blink(seconds);
      return light.ok ? said(`the light ${light.value} of ${deps.nodeName} blinks for ${seconds} s`) : light;
    }
    case 'decommission': {
      if (request.confirm !== deps.nodeName)
        return refused(
          409,
          `this ends all pods that came over MQTT and clears the node's topics; confirm it with the name of the node, ${deps.nodeName}`,
        );
      const objects = await deps.decommission();
      if (objects === undefined) return refused(409, 'this node has no broker to leave (mqtt.servers)');
      const what = objects === 1 ? '1 object' : `${objects} objects`;
      return said(
        `${deps.nodeName} is out of the fleet: ${what} from topics are gone, its topics are cleared; what comes from files goes on`,
      );
    }
    default: {
      const never: never = request;
      return never;
    }
  }
}
