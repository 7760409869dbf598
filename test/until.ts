/** Waiting for what comes about beside the test: in another process, on a real disk, on a real socket. */
import assert from 'node:assert/strict';

/** Only a test that fails waits for so long. A busy machine takes many times as long as a free one, so nothing shorter says anything. */
export const patienceMs = 30_000;

export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + patienceMs; !(await holds()); await new Promise((resolve) => setTimeout(resolve, 5)))
    assert.ok(performance.now() < end, `waited in vain: ${what}`);
}

/** Nothing is asked of the disk any more, nor was in the last few turns: what was begun before is done. */
export async function diskIsStill(): Promise<void> {
  let still = 0;
  await until('the disk is still', () => {
    still = process.getActiveResourcesInfo().some((r) => /^FSReq|CloseReq|FileHandle/i.test(r)) ? 0 : still + 1;
    return still > 4;
  });
}

/** Milliseconds of processor that `work` took: unlike time it does not rise with what else runs on the machine. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
