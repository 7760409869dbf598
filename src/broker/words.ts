// pure
/** The words between the session and its connections: who the node is, what outlives a connection, how one ends. */
import type { BrokerError } from '../world/broker.ts';

/** Who this node is, as the session needs it (`node/identity.ts` has all of it). */
export interface SessionIdentity {
  readonly nodeName: string;
  readonly machine: string;
  readonly bootId: string;
  boot(): number;
  /** False while the boot counter is lost: the greatest one seen in the own retained `online` counts, before anything is told. */
  bootKnown(): boolean;
  adoptBoot(greatestSeen: number | undefined): Promise<void>;
  /** Does the identity file name this hardware? */
  rightful(): boolean;
  /** This hardware takes the name (the board was replaced). */
  claim(): Promise<void>;
  /** The machine whose name we took is alive: the file names it again. */
  giveBack(machine: string): Promise<void>;
  /** Machines this name was on before. */
  formerMachines(): readonly string[];
}

export type Mode = 'normal' | 'listening' | 'duplicate';

/** What outlives a connection. */
export interface SessionState {
  mode: Mode;
  /** All sources are ready: what is unknown is a ghost. */
  ready: boolean;
  /** The own subtree is to be read. */
  ghostsDue: boolean;
  /** Another machine may be using the name until then: nothing of the subtree is cleared. */
  suspectUntil: number;
  /** The machine last heard under our name. */
  other: string | undefined;
  /** Our own `online` did not come back. */
  unread: boolean;
  /** No connection was opened yet by this agent. */
  first: boolean;
}

/** `again`: we ended it to come back at once, with another will. */
export type LinkEnd = { readonly by: 'broker'; readonly error: BrokerError | undefined } | { readonly by: 'us'; readonly again: boolean };
