/**
 * The gate of a node: policy, keys and seals of this moment, as the questions that sources and commands ask. Owns nothing: everything it goes
 * by is asked for each time, so that a reload holds from the next question on. It judges, and never keeps, runs or tells.
 */
import type { Command } from '../api/messages.ts';
import type { ApiObject, Problem, Source } from '../api/objects.ts';
import { problemText } from '../api/problems.ts';
import type { Secret } from '../api/v1.ts';
import type { Verb } from '../api/verbs.ts';
import { looksLikeEnvelope, type Opened, openDetached, openEnvelope, type PayloadKind, type TrustedKey, withoutProof } from './dsse.ts';
import { judgeObject, mayRead, type Policy, type PolicySource } from './policy.ts';
import { keyIdOf } from './rawKeys.ts';
import { isSealed, type SealingKey, unsealSecret } from './seal.ts';
import { type Arrival, type Distrust, judgeScope, judgeSigned, judgeSignedCommand, type Receiver, type Words } from './trust.ts';

export interface GatekeeperDeps {
  policy(of: PolicySource): Policy;
  keys(): readonly TrustedKey[];
  receiver(): Receiver;
  /** undefined: the node has none (yet). */
  sealingKey(): SealingKey | undefined;
}

/** Why something is not taken: a reason of reasons.ts, and words for people. */
export interface Refusal {
  readonly ok: false;
  readonly reason: string;
  readonly message: string;
}

/** `signed`: the ids of the trusted keys that signed it, with commas; absent: it counts as unsigned. */
export type Unwrapped = { readonly ok: true; readonly bytes: Uint8Array; readonly signed?: string } | Refusal;

const kindOf = (source: Source): PolicySource => (source.startsWith('file:') ? 'file' : 'mqtt');

export class Gatekeeper {
  constructor(private readonly deps: GatekeeperDeps) {}

  #policy(source: Source): Policy {
    return this.deps.policy(kindOf(source));
  }

  /** What the policy of its source denies to an object, and the scope of the keys that signed it: also asked of what was accepted before. */
  judge(object: ApiObject, { source, signed }: { readonly source: Source; readonly signed?: string }): readonly Problem[] {
    const policy = this.#policy(source);
    const signers = this.#signers(signed);
    const unproven = signers.length === 0 && (signed !== undefined || policy.requireSignature);
    const wrong = judgeScope({ of: 'manifest', namespace: object.metadata.namespace ?? 'default' }, { source, signers });
    return [
      ...(unproven
        ? [{ path: '', expected: 'a signature of a key in keys.d', got: signed === undefined ? 'none' : 'one of another key' }]
        : []),
      ...(wrong === undefined ? [] : [wrong.problem]),
      ...judgeObject(object, policy),
    ];
  }

  /** Takes an envelope off, if it has one. */
  open(bytes: Uint8Array, { source, of }: { readonly source: Source; readonly of: PayloadKind }): Unwrapped {
    return this.#unwrap(bytes, of, this.#policy(source).requireSignature);
  }

  /** A file with what lies beside it as its signature. */
  openFile(bytes: Uint8Array, o: { readonly source: Source; readonly signature: Uint8Array | undefined }): Unwrapped {
    const required = this.#policy(o.source).requireSignature;
    // where nobody is trusted and nothing need be signed, a signature says nothing
    if (o.signature === undefined || (!required && this.deps.keys().length === 0)) return required ? unsignedFile : { ok: true, bytes };
    return proven(openDetached(o.signature, bytes, this.deps.keys(), 'manifest'));
  }

  /** A command, before it is parsed. */
  openCommand(bytes: Uint8Array): Unwrapped {
    return this.#unwrap(bytes, 'command', false);
  }

  /** Whether a command may be asked for in this form: signed by whom, for whom. Verbs of the policy are another question. */
  judgeCommand(
    command: Command,
    verb: Verb,
    signed: string | undefined,
  ): { readonly reason: string; readonly message: string } | undefined {
    const { requireSignature } = this.deps.policy('mqtt');
    const signers = this.#signers(signed);
    if (signed !== undefined && signers.length === 0) return keyUnknown(signed);
    return told(judgeSignedCommand(command, { verb, signers, required: requireSignature, node: this.deps.receiver().node }));
  }

  requiresSignature(source: Source): boolean {
    return this.#policy(source).requireSignature;
  }

  /** Whether what was signed may be said by that key here. */
  trust({
    source,
    signed,
    key,
    ...words
  }: Words & { readonly source: Source; readonly signed: string; readonly key?: { readonly namespace: string } }):
    | { readonly reason: string; readonly message: string }
    | undefined {
    const signers = this.#signers(signed);
    if (signers.length === 0) return keyUnknown(signed);
    return told(judgeSigned({ ...words, ...(key !== undefined && { namespace: key.namespace }) }, this.#arrival(source, signers)));
  }

  /** A sealed Secret with its values open; one that is not sealed as it is. */
  unseal(secret: Secret): { readonly ok: true; readonly secret: Secret } | Refusal {
    return isSealed(secret) ? unsealSecret(secret, this.deps.sealingKey()) : { ok: true, secret };
  }

  /** Whether pods of a source may use objects of the other kind of source. */
  mayRead(source: Source, namespace: string): boolean {
    return mayRead(this.#policy(source), namespace);
  }

  locked(source: Source): boolean {
    return this.#policy(source).locked;
  }

  maxPods(of: PolicySource): number | undefined {
    return this.deps.policy(of).maxPods;
  }

  #unwrap(bytes: Uint8Array, of: PayloadKind, required: boolean): Unwrapped {
    const keys = this.deps.keys();
    if (!looksLikeEnvelope(bytes)) return required ? unsigned : { ok: true, bytes };
    if (!required && keys.length === 0) {
      // who could send it signed wrongly could send it unsigned as well
      const opened = withoutProof(bytes, of);
      return opened.ok ? { ok: true, bytes: opened.payload } : plainOr(opened, bytes);
    }
    const opened = openEnvelope(bytes, keys, of);
    return opened.ok || required ? proven(opened) : plainOr(opened, bytes);
  }

  #signers(signed: string | undefined): readonly TrustedKey[] {
    if (signed === undefined) return [];
    const ids = signed.split(',');
    return this.deps.keys().filter((key) => ids.includes(signerOf(key)));
  }

  #arrival(source: Source, signers: readonly TrustedKey[]): Arrival {
    return { source, signers, required: this.#policy(source).requireSignature, receiver: this.deps.receiver() };
  }
}

const unsigned: Refusal = { ok: false, reason: 'Unsigned', message: 'it is not signed, and the policy asks for a signature' };
const unsignedFile: Refusal = { ok: false, reason: 'Unsigned', message: 'there is no .sig beside it, and the policy asks for one' };

const proven = (opened: Opened): Unwrapped =>
  opened.ok ? { ok: true, bytes: opened.payload, signed: opened.keys.map(signerOf).join(',') } : opened;

/** Of a key with a name of its own its fingerprint, too: another key that takes the name over has signed nothing of what the former one had. */
function signerOf({ keyid, publicKey }: TrustedKey): string {
  const print = prints.get(publicKey) ?? keyIdOf(publicKey);
  prints.set(publicKey, print);
  return keyid === print ? keyid : `${keyid}#${print}`;
}
const prints = new WeakMap<TrustedKey['publicKey'], string>();

/** What only looked like an envelope is what it is. */
const plainOr = (opened: Extract<Opened, { ok: false }>, bytes: Uint8Array): Unwrapped =>
  opened.reason === 'Unsigned' ? { ok: true, bytes } : opened;

const keyUnknown = (signed: string): { readonly reason: string; readonly message: string } => ({
  reason: 'KeyUnknown',
  message: `the key that signed it is not in keys.d (${signed.slice(0, 80)})`,
});

const told = (wrong: Distrust | undefined): { readonly reason: string; readonly message: string } | undefined =>
  wrong === undefined ? undefined : { reason: wrong.reason, message: problemText(wrong.problem) };
