/** The words between the MQTT source and whoever wires it: what comes in, what it asks for, and how a payload is opened and judged. */
import type { NodeConfig } from '../api/messages.ts';
import type { ApiObject, KeyText, ObjectKey, Problem, Source } from '../api/objects.ts';
import type { Secret } from '../api/v1.ts';
import type { Clock } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import type { DocumentOptions } from './decode.ts';
import type { Entry } from './merge.ts';

/** One message on a topic below `desired/` or `rollouts/`. */
export interface RemoteMessage {
  readonly topic: string;
  readonly payload: Uint8Array;
  /** It stood at the broker already; false: it was published just now. */
  readonly retain: boolean;
}

/** What a payload is meant to be: a signed one says so by its type. */
export type PayloadOf = 'manifest' | 'index' | 'config';

/** What the bytes of a topic, or of a file, say: those inside an envelope, or as they came where no signature is asked for. */
export type Unwrapped =
  | {
      readonly ok: true;
      readonly bytes: Uint8Array /** The id of the key that signed it; absent: it is not signed. */;
      readonly signed?: string;
    }
  | { readonly ok: false; readonly reason: string; readonly message: string };

/** What is judged besides the object itself. */
export interface SaidBy {
  readonly source: Source;
  /** The id of the key that signed it. */
  readonly signed?: string;
}

/** What something signed says of itself: it must be for this node, and for what its key may sign. */
export interface SignedWords extends SaidBy {
  readonly signed: string;
  readonly of: PayloadOf;
  /** Absent: an index or `_config`. */
  readonly key?: ObjectKey;
  readonly audience?: string;
  readonly generation?: number;
}

export type Unsealed =
  | { readonly ok: true; readonly secret: Secret }
  /** `CannotUnseal`. */
  | { readonly ok: false; readonly reason: string; readonly message: string };

/** Policy and keys, as functions of the settings of this moment. What is left out allows everything. */
export interface PolicyPort {
  /** What the policy of the source denies of it; also asked of what was accepted before. */
  judge?(object: ApiObject, by: SaidBy): readonly Problem[];
  /** Takes an envelope off. Not asked for an empty payload. */
  open?(bytes: Uint8Array, o: { readonly source: Source; readonly of: PayloadOf }): Unwrapped;
  /** As `open`, of a file with its `.sig`, if there is one. */
  openFile?(bytes: Uint8Array, o: { readonly source: Source; readonly signature: Uint8Array | undefined }): Unwrapped;
  /** Whether nothing of this source counts without a signature: an empty payload then deletes nothing. */
  requiresSignature?(source: Source): boolean;
  /** Whether what was signed may be said by that key here. */
  trust?(said: SignedWords): { readonly reason: string; readonly message: string } | undefined;
  unseal?(secret: Secret): Unsealed;
  /** Objects of the other kind of source (file, MQTT) may be seen by pods of `source`, in this namespace. */
  mayRead?(source: Source, namespace: string): boolean;
  /** This source wins over a stronger one. */
  locked?(source: Source): boolean;
  /** The most pods of this kind of source; undefined: any number. */
  maxPods?(of: 'file' | 'mqtt'): number | undefined;
}

export interface RemoteDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** stateDir. */
  readonly store: Store;
  readonly prefix: string;
  readonly nodeName: string;
  /** Of the file; `_config` goes over them. They may change while running (then `settingsChanged`). */
  groups(): readonly string[];
  labels(): Readonly<Record<string, string>>;
  /** Subscribes exact topics and lets them go again; resolves when all that will come has come. Rejects when the connection ends. */
  fetch(topics: readonly string[]): Promise<void>;
  /** `filters()` are others now. An empty list lets all go; the same filters after it bring a new snapshot. */
  follow(filters: readonly string[]): void;
  /** `config()` is another now. */
  configChanged?(config: NodeConfig | undefined): void;
}

/** What the sources do with it. */
export interface RemotePort {
  /** Something is to be taken in. */
  step(): void;
  policy(): PolicyPort;
}

/** What a step of the sources knows. */
export interface TakeContext {
  readonly decode: DocumentOptions;
  readonly entries: ReadonlyMap<KeyText, Entry>;
  breathe(): Promise<void>;
}
