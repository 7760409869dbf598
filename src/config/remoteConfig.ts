/** `_config` of this node: the last good one, stored, so that a reboot without a broker has the same groups. Owns nothing else. */
import type { NodeConfig } from '../api/messages.ts';
import type { Store } from '../world/store.ts';
import { type Denial, wholly } from './allowed.ts';
import { type Counted, generationProblem } from './generationRule.ts';
import { readNodeConfig } from './nodeConfig.ts';
import { type ReaderContext, untrustedWords } from './remoteReader.ts';

const storeKey = 'mqtt/config';

export class RemoteConfig {
  #value: NodeConfig | undefined;
  #known: Counted = {};
  #dirty = false;
  #changed = false;
  #sure = false;

  constructor(private readonly store: Store) {}

  get value(): NodeConfig | undefined {
    return this.#value;
  }

  /** The newest that was ever taken is known: a loss of the card is no wish to leave groups. */
  get sure(): boolean {
    return this.#sure;
  }

  /** Rejects when it cannot be read: then there is none. */
  async load(): Promise<void> {
    const read = await this.store.read(storeKey);
    this.#sure = read?.older !== true;
    const stored = read?.value;
    if (typeof stored !== 'object' || stored === null) return;
    const { config, hash, generation } = stored as Readonly<Record<string, unknown>>;
    const checked = config === undefined ? undefined : readNodeConfig(config);
    if (checked?.ok === true) this.#value = checked.config;
    this.#known = { ...(typeof generation === 'number' && { generation }), ...(typeof hash === 'string' && { hash }) };
    this.#changed = this.#value !== undefined;
  }

  /** What its topic says now; undefined: an empty payload, which takes it back. What is against it, in words. */
  take(
    said: { readonly value: unknown; readonly signed: string | undefined } | undefined,
    hash: string,
    c: Pick<ReaderContext, 'policy'>,
  ): Denial | undefined {
    const refuse = (reason: string, message: string): Denial => ({ reason, message, problems: [wholly(message)] });
    if (said === undefined) {
      if (c.policy.requiresSignature?.('mqtt:node') === true)
        return refuse('Unsigned', 'an empty payload is not signed, so that it takes nothing back');
      this.#sure = true;
      if (this.#value !== undefined) this.#set(undefined, this.#known);
      return undefined;
    }
    if (hash === this.#known.hash && this.#value !== undefined) {
      this.#sure = true;
      return undefined;
    }
    const read = readNodeConfig(said.value);
    if (!read.ok) return { reason: 'Invalid', message: '', problems: read.problems };
    const { generation } = read.config;
    const counted = { ...(generation !== undefined && { generation }), hash };
    const told = untrustedWords('mqtt:node', 'config', said, generation, c) ?? generationProblem(this.#known, counted);
    if (told !== undefined) return refuse(told.reason, told.message);
    this.#sure = true;
    this.#set(read.config, generation === undefined ? { ...this.#known, hash } : counted);
    return undefined;
  }

  /** Whether it is another since this was asked last. */
  takeChanged(): boolean {
    const changed = this.#changed;
    this.#changed = false;
    return changed;
  }

  async save(): Promise<void> {
    if (!this.#dirty) return;
    await this.store.put(storeKey, { ...(this.#value && { config: this.#value }), ...this.#known });
    this.#dirty = false;
  }

  async forget(): Promise<void> {
    this.#changed = this.#value !== undefined;
    this.#value = undefined;
    this.#known = {};
    this.#dirty = false;
    await this.store.remove(storeKey);
  }

  #set(value: NodeConfig | undefined, known: Counted): void {
    this.#changed ||= JSON.stringify(value) !== JSON.stringify(this.#value);
    this.#value = value;
    this.#known = known;
    this.#dirty = true;
  }
}
