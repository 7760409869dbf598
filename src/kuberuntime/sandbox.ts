/** Making a pod's sandbox: log folder, config, RunPodSandbox. Mirrors kubelet v1.32 createPodSandbox (facts 4.2 step 4). */
import type { SandboxConfig } from '../container/runtime.ts';
import type { SandboxId } from '../container/words.ts';
import { describeError } from '../world/log.ts';
import { type SandboxInputs, sandboxConfig } from './configs.ts';
import type { KubeRuntimeDeps, SyncRun } from './deps.ts';
import { podDns } from './dns.ts';
import { isNameReserved, nameTries, nextAttempt } from './reserved.ts';

/** A sandbox that an earlier call made after all is in the next news: no reason to wait for the back-off of an error. */
const lookAgainMs = 1000;

/** The sandbox, or undefined with the reason among the results. */
export async function createSandbox(
  deps: KubeRuntimeDeps,
  run: SyncRun,
  firstAttempt: number,
  inputs: Omit<SandboxInputs, 'attempt'>,
): Promise<{ id: SandboxId; config: SandboxConfig } | undefined> {
  const { desired } = run;
  const fail = (e: unknown, waitMs?: number): undefined => {
    const error = { reason: 'CreatePodSandboxError', message: describeError(e) };
    run.results.push({ action: 'CreatePodSandbox', target: desired.name, error, ...(waitMs !== undefined && { waitMs }) });
    // a pod that is being ended has no use for the news
    if (run.signal.aborted || waitMs !== undefined) return;
    deps.event(desired, undefined, 'Warning', 'FailedCreatePodSandBox', `Failed to create pod sandbox: ${error.message}`);
  };
  try {
    await deps.logs.ensure(desired);
  } catch (e) {
    return fail(e);
  }
  for (const message of podDns(desired.pod, inputs).cut) deps.event(desired, undefined, 'Warning', 'DNSConfigForming', message);
  let attempt = firstAttempt;
  for (let tries = 1; ; tries++) {
    try {
      const config = sandboxConfig(desired, { ...inputs, attempt });
      run.acted = true;
      const id = await deps.runtime.runSandbox(config, '');
      deps.acted(desired.uid, id);
      run.results.push({ action: 'CreatePodSandbox', target: desired.name });
      return { id, config };
    } catch (e) {
      if (!isNameReserved(e) || tries === nameTries) return fail(e);
      const listed = await deps.runtime.listSandboxes(desired.uid).catch(() => undefined); // the first error says more
      if (listed === undefined) return fail(e);
      if (listed.some((s) => s.state === 'ready')) return fail(e, lookAgainMs);
      attempt = nextAttempt(attempt, listed);
    }
  }
}
