/** Making a pod's sandbox: log folder, config, RunPodSandbox, its addresses. Mirrors kubelet v1.32 createPodSandbox (facts 4.2 step 4). */
import type { SandboxConfig } from '../container/runtime.ts';
import type { SandboxId, SandboxStatus } from '../container/words.ts';
import { describeError } from '../world/log.ts';
import { type SandboxInputs, sandboxConfig } from './configs.ts';
import type { KubeRuntimeDeps, SyncRun } from './deps.ts';
import { podDns } from './dns.ts';
import { isNameReserved, nameTries, nextAttempt } from './reserved.ts';

/** A sandbox that an earlier call made after all is in the next news: no reason to wait for the back-off of an error. */
const lookAgainMs = 1000;

/** Where the containers of a pod start. */
export interface ReadySandbox {
  readonly id: SandboxId;
  readonly config: SandboxConfig;
  /** The pod's addresses; those of the host in its network. */
  readonly ips: readonly string[];
}

/** The addresses in a sandbox, as its status has them. */
export function addressesOf({ networkMode, network }: SandboxStatus, hostIps: readonly string[]): readonly string[] {
  if (networkMode === 'NODE') return hostIps;
  return network === undefined ? [] : [network.ip, ...network.additionalIps].filter((ip) => ip !== '');
}

/** The same, as the runtime says it now. */
export async function sandboxIps(deps: Pick<KubeRuntimeDeps, 'runtime' | 'settings'>, id: SandboxId): Promise<readonly string[]> {
  return addressesOf(await deps.runtime.sandboxStatus(id), deps.settings.hostIps?.() ?? []);
}

/** The sandbox, or undefined with the reason among the results. */
export async function createSandbox(
  deps: KubeRuntimeDeps,
  run: SyncRun,
  firstAttempt: number,
  inputs: Omit<SandboxInputs, 'attempt'>,
): Promise<ReadySandbox | undefined> {
  const made = await makeSandbox(deps, run, firstAttempt, inputs);
  if (made === undefined) return undefined;
  const { desired } = run;
  if (desired.pod.spec.hostNetwork) return { ...made, ips: deps.settings.hostIps?.() ?? [] };
  try {
    return { ...made, ips: await sandboxIps(deps, made.id) };
  } catch (e) {
    const error = { reason: 'FailedPodSandBoxStatus', message: `Unable to get pod sandbox status: ${describeError(e)}` };
    deps.event(desired, undefined, 'Warning', 'FailedPodSandBoxStatus', error.message);
    run.results.push({ action: 'ConfigPodSandbox', target: desired.name, error });
    return undefined;
  }
}

async function makeSandbox(
  deps: KubeRuntimeDeps,
  run: SyncRun,
  firstAttempt: number,
  inputs: Omit<SandboxInputs, 'attempt'>,
): Promise<Omit<ReadySandbox, 'ips'> | undefined> {
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
      const id = await deps.runtime.runSandbox(config, desired.pod.spec.runtimeClassName ?? '');
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
