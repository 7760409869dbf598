/**
 * The answer to one command on its way: one message after the other, the next only when the broker has the last, and none any more when that
 * fails, as it does when the connection ends. Without a reply topic nothing is sent. Owns the order of its messages.
 */
import type { Reply } from '../api/messages.ts';
import { expirySeconds } from '../api/topics.ts';
import { describeError, type Log } from '../world/log.ts';
import type { ReplyPart, ReplyTo } from './words.ts';

export interface AnswerDeps {
  readonly log: Log;
  readonly nodeName: string;
  readonly boot: () => number;
  readonly seq: () => number;
  /** Resolves at PUBACK; rejects when the connection ends or the broker refuses it. */
  readonly reply: (
    topic: string,
    payload: string,
    o: { readonly correlationData?: Uint8Array; readonly expirySeconds: number },
  ) => Promise<void>;
}

export class Answer {
  #sent: Promise<boolean> = Promise.resolve(true);
  #noting = false;

  constructor(
    private readonly deps: AnswerDeps,
    private readonly to: ReplyTo | undefined,
    private readonly about: { readonly id: string; readonly verb: string },
  ) {}

  /** undefined: nobody is told. */
  get topic(): string | undefined {
    return this.to?.topic;
  }

  /** That it goes on; left out while the one before is still on its way. */
  note(status: 'accepted' | 'running'): void {
    if (this.#noting) return;
    this.#noting = true;
    void this.send({ status }).finally(() => {
      this.#noting = false;
    });
  }

  /** After all that was sent before it. False: nobody is reached any more. Never rejects. */
  send(part: ReplyPart): Promise<boolean> {
    this.#sent = this.#sent.then((reached) => reached && this.#publish(part));
    return this.#sent;
  }

  async #publish(part: ReplyPart): Promise<boolean> {
    const { boot, log, nodeName, reply, seq } = this.deps;
    if (this.to === undefined) return false;
    const { topic, correlationData } = this.to;
    const { id, verb } = this.about;
    const payload: Reply = {
      apiVersion: 'podsched.dev/v1',
      kind: 'Reply',
      id,
      node: nodeName,
      verb,
      ...part,
      boot: boot(),
      seq: seq(),
    };
    try {
      await reply(topic, JSON.stringify(payload), {
        ...(correlationData !== undefined && { correlationData }),
        expirySeconds: expirySeconds.reply,
      });
      return true;
    } catch (error) {
      log.info({ verb, topic, error: describeError(error) }, 'an answer could not be told');
      return false;
    }
  }
}
