/** A runner of a few lines: suites of checks in order, each told to the host as it ends, none ending the others. */
import { appendFileSync } from 'node:fs';
import { describe, order, sleep } from './machine.ts';

export interface Story {
  /** One claim. It has failed when `make` rejects or takes longer than `seconds`. Returns whether it held. */
  check(name: string, make: () => Promise<void> | void, seconds?: number): Promise<boolean>;
  /** A figure for people; nothing is judged by it. */
  figure(name: string, value: string | number): void;
}

export interface Suite {
  readonly name: string;
  run(story: Story): Promise<void>;
}

const diary = '/mnt/host/diary';
export const tell = (line: Readonly<Record<string, unknown>>): void => appendFileSync(diary, `${JSON.stringify(line)}\n`);

/** A pod takes 5 to 8 s to start here, and the machine is about 30 times slower than a Pi 4. */
const usualSeconds = 180;

async function within(make: () => Promise<void> | void, seconds: number): Promise<void> {
  const late = new AbortController();
  await Promise.race([
    (async () => await make())(),
    sleep(seconds * order.patience * 1000, late.signal).then(() => {
      throw new Error(`not done within ${seconds} s`);
    }),
  ]).finally(() => late.abort());
}

export async function runSuite(suite: Suite): Promise<void> {
  const { name } = suite;
  tell({ kind: 'begin', suite: name });
  const story: Story = {
    check: async (what, make, seconds = usualSeconds) => {
      const from = performance.now();
      const error = await within(make, seconds).then(
        () => undefined,
        (e: unknown) => describe(e),
      );
      tell({ kind: 'check', suite: name, name: what, ms: Math.round(performance.now() - from), ...(error !== undefined && { error }) });
      return error === undefined;
    },
    figure: (what, value) => tell({ kind: 'figure', suite: name, name: what, value: String(value) }),
  };
  try {
    await suite.run(story);
  } catch (e) {
    tell({ kind: 'check', suite: name, name: 'the suite goes on to its end', ms: 0, error: describe(e) });
  }
  tell({ kind: 'end', suite: name });
}
