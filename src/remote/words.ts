// pure
/** The words of this room: who asks, what for, and what is answered. */
import type { Command, Reply } from '../api/messages.ts';
import type { Verb } from '../api/verbs.ts';

/** Where the answer goes. */
export interface ReplyTo {
  readonly topic: string;
  /** The one level of the topic that names who asks. */
  readonly requester: string;
  readonly correlationData?: Uint8Array;
}

/** Who asks, as far as anybody can tell: the level of the reply topic, and the key that signed. */
export interface Who {
  readonly requester?: string;
  readonly keyId?: string;
}

export type Target = NonNullable<Command['target']>;
/** Arguments after their check: each of the type its table says, defaults filled in. */
export type Args = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** A command that may be run. */
export interface Asked {
  readonly verb: Verb;
  /** Empty: it has none, and is never answered from memory. */
  readonly id: string;
  readonly target: Target;
  readonly args: Args;
  readonly who: Who;
}

export type RefusedStatus = 'error' | 'denied' | 'expired' | 'tooLarge';

export interface Refusal {
  readonly status: RefusedStatus;
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** The answer's data, before it is cut into chunks. */
export type Body =
  | { readonly json: unknown }
  | { readonly text: string }
  /** Read only as fast as it is sent; `capBytes`: no more of it. */
  | { readonly bytes: AsyncIterable<Uint8Array>; readonly capBytes: number }
  | { readonly output: { readonly stdout: Uint8Array; readonly stderr: Uint8Array } };

export interface Done {
  readonly status: 'ok';
  readonly message?: string;
  readonly exitCode?: number;
  readonly truncated?: string;
  readonly body?: Body;
}

export type Outcome = Done | Refusal;

/** One message of an answer, without what is the same in each. */
export type ReplyPart = Pick<Reply, 'status' | 'reason' | 'message' | 'chunk' | 'stream' | 'encoding' | 'data' | 'exitCode' | 'truncated'>;
