/**
 * Finding a machine by its light: the board's own LED blinks for some seconds and is then what it was before. Owns the light while it blinks,
 * and the entry `light` of runDir meanwhile, so that what it was before outlives the agent: an agent that ends puts it back, and what a killed one
 * left is put back by the next.
 * Never: waits for the end of the blinking; touches a light that it does not put back.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../world/clock.ts';
import { codeOf } from '../world/errno.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { type Answered, refused } from './answered.ts';

export interface IdentifyDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** `/sys`, or a folder made like it. */
  readonly sysRoot: string;
  /** runDir: a boot puts the light back by itself. */
  readonly store: Store;
}

/** What a light was before. */
interface Before {
  readonly light: string;
  readonly trigger: string;
  readonly brightness: string;
}

interface Blinking {
  readonly light: string;
  readonly stop: AbortController;
  until: number;
}

/** The green one of a Raspberry Pi, by the names it has had; then what other boards call theirs. */
const usualNames = [/^ACT$/i, /^led0$/, /act(ivity)?$/i, /status$/i, /^led1$|^PWR$/i];
const entry = 'light';
const halfPeriodMs = 150;

const isBefore = (v: unknown): v is Before =>
  typeof v === 'object' &&
  v !== null &&
  (['light', 'trigger', 'brightness'] as const).every((key) => typeof (v as Record<string, unknown>)[key] === 'string') &&
  /^[^/]+$/.test((v as Before).light);

export class Identify {
  #blinking: Blinking | undefined;
  /** The last one is over, and the light is back. */
  #over: Promise<void> = Promise.resolve();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly deps: IdentifyDeps) {}

  /** Puts back what an agent that was killed left blinking. Never rejects. */
  async load(): Promise<void> {
    try {
      const left = await this.deps.store.get(entry);
      if (isBefore(left)) await this.#putBack(left);
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'a light that blinked cannot be put back');
    }
  }

  /** Resolves when it blinks, to the name of the light. Asked again meanwhile, the time begins anew. */
  blink(seconds: number): Promise<Answered<string>> {
    const mine = this.#turn.then(() => this.#begin(seconds));
    this.#turn = mine.catch(() => {}); // the failure is the caller's
    return mine;
  }

  async #begin(seconds: number): Promise<Answered<string>> {
    const until = this.deps.clock.monotonic() + seconds * 1000;
    if (this.#blinking !== undefined) {
      this.#blinking.until = until;
      return { ok: true, value: this.#blinking.light };
    }
    await this.#over;
    let before: Before;
    try {
      const light = await this.#light();
      if (light === undefined) return refused(409, 'this machine has no light that could blink (/sys/class/leds has none)');
      before = await this.#before(light);
      await this.deps.store.put(entry, before);
      await this.#write(light, 'trigger', 'none');
    } catch (e) {
      return refused(409, `the light of this machine cannot be used: ${codeOf(e)}`);
    }
    const { light } = before;
    this.#blinking = { light, stop: new AbortController(), until };
    this.#over = this.#run(before, this.#blinking);
    return { ok: true, value: light };
  }

  /** The light is as it was when it resolves. Never rejects. */
  async stop(): Promise<void> {
    await this.#turn;
    this.#blinking?.stop.abort();
    await this.#over;
  }

  async #run(before: Before, blinking: Blinking): Promise<void> {
    const { clock, log } = this.deps;
    const { signal } = blinking.stop;
    try {
      const most = (await this.#read(before.light, 'max_brightness').catch(() => '1')).trim();
      for (let on = true; clock.monotonic() < blinking.until; on = !on) {
        await this.#write(before.light, 'brightness', on ? most : '0');
        await clock.sleep(halfPeriodMs, signal);
      }
    } catch (e) {
      if (!signal.aborted) log.warn({ error: describeError(e) }, 'the light stopped blinking');
    }
    this.#blinking = undefined;
    await this.#putBack(before).catch((e) => log.warn({ error: describeError(e) }, 'the light cannot be put back'));
  }

  async #putBack({ light, trigger, brightness }: Before): Promise<void> {
    // first: a brightness of 0 takes the trigger away
    await this.#write(light, 'brightness', brightness);
    await this.#write(light, 'trigger', trigger);
    await this.deps.store.remove(entry);
  }

  /** What could not be put back the last time still counts. */
  async #before(light: string): Promise<Before> {
    const left = await this.deps.store.get(entry).catch(() => undefined);
    if (isBefore(left) && left.light === light) return left;
    return { light, trigger: selected(await this.#read(light, 'trigger')), brightness: (await this.#read(light, 'brightness')).trim() };
  }

  async #light(): Promise<string | undefined> {
    const names = await readdir(join(this.deps.sysRoot, 'class/leds')).catch((e) => (codeOf(e) === 'ENOENT' ? [] : Promise.reject(e)));
    for (const usual of usualNames) {
      const found = names.sort().find((name) => usual.test(name));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #read(light: string, file: string): Promise<string> {
    return readFile(join(this.deps.sysRoot, 'class/leds', light, file), 'utf8');
  }

  #write(light: string, file: string, text: string): Promise<void> {
    return writeFile(join(this.deps.sysRoot, 'class/leds', light, file), text);
  }
}

/** `none [mmc0] timer`: the one in brackets. */
const selected = (text: string): string => /\[([^\]]+)\]/.exec(text)?.[1] ?? 'none';
