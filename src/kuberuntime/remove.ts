/** Removing one ended container with its log. */
import { isNotFound, type Runtime } from '../container/runtime.ts';
import type { Container } from '../container/words.ts';
import type { LogFolders } from './logs.ts';
import type { PodRef } from './names.ts';

/** Rejects when the log cannot be removed (the container then stays, as a sign) or the runtime refuses. What is gone is removed. */
export async function removeRecord(
  deps: { readonly runtime: Pick<Runtime, 'removeContainer'>; readonly logs: LogFolders },
  pod: PodRef,
  record: Pick<Container, 'id' | 'name' | 'attempt'>,
): Promise<void> {
  await deps.logs.removeLog(pod, record.name, record.attempt);
  await deps.runtime.removeContainer(record.id).catch((e) => {
    if (!isNotFound(e)) throw e;
  });
}
