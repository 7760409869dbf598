/**
 * The wiring of policy: the policies of the configuration, the keys of keys.d, the node's sealing key, and the questions that sources, volumes
 * and commands ask of them. Owns the policies as they were read last.
 */
import { join } from 'node:path';
import type { PodschedConfiguration } from './api/configuration.ts';
import type { DesiredPod } from './api/desired.ts';
import type { Source } from './api/objects.ts';
import { HeldBack } from './container/heldBack.ts';
import { Gatekeeper } from './policy/gatekeeper.ts';
import { rootOf } from './policy/hostPaths.ts';
import { KeyFolder, type KeyProblem } from './policy/keys.ts';
import { type Policy, readPolicy } from './policy/policy.ts';
import { RealPaths } from './policy/realPaths.ts';
import { ownSealingKey, type SealingKey } from './policy/seal.ts';
import type { Receiver } from './policy/trust.ts';
import type { Clock } from './world/clock.ts';
import type { Log } from './world/log.ts';
import type { Store } from './world/store.ts';

/** The keys of the configuration that count here. */
export type PolicySettings = Pick<PodschedConfiguration, 'policy.file' | 'policy.mqtt' | 'strict' | 'staticPodPath'>;

export interface PolicyParts {
  readonly clock: Clock;
  readonly log: Log;
  /** stateDir. */
  readonly stateStore: Pick<Store, 'get' | 'put'>;
  /** As it is now: SIGHUP changes it. */
  readonly settings: () => PolicySettings;
  readonly receiver: () => Receiver;
  readonly keyProblems?: (problems: readonly KeyProblem[]) => void;
}

export interface PolicySide {
  /** What `config/` calls its PolicyPort. */
  readonly gate: Gatekeeper;
  readonly keys: KeyFolder;
  policy(of: 'file' | 'mqtt'): Policy;
  /** The public key in base64, for the annotation podsched.dev/sealing-key; undefined: there is none. */
  sealingKey(): string | undefined;
  /** For the volumes' checkPath: rejects when a hostPath leads where its source may not. */
  checkPath(desired: DesiredPod, path: string): Promise<void>;
  /** For the volumes' rootOf: the allowed path that a hostPath may not lead out of; undefined: it may lead anywhere. */
  rootOf(desired: DesiredPod, path: string): string | undefined;
  /** Reads policies and keys again, at start and at SIGHUP. Resolves true when anything is other than before, so that all is judged again. */
  reload(): Promise<boolean>;
}

/** Reads policies, keys and the sealing key. Keys and seals that cannot be had never hold up a start: they are told. */
export async function buildPolicy({ clock, log, stateStore, settings, receiver, keyProblems }: PolicyParts): Promise<PolicySide> {
  const { staticPodPath } = settings();
  const keys = new KeyFolder({
    log,
    store: stateStore,
    dir: join(staticPodPath, 'keys.d'),
    strict: () => settings().strict,
    ...(keyProblems !== undefined && { onProblems: keyProblems }),
  });
  const paths = new RealPaths({ clock });
  let policies = readBoth(settings());
  const sealing: SealingKey | undefined = await ownSealingKey(stateStore, log).catch((e: unknown) => {
    log.error({ error: e }, 'the sealing key cannot be stored: no Secret can be sealed for this node');
    return undefined;
  });
  await keys.read();
  const policy = (of: 'file' | 'mqtt'): Policy => policies[of];
  const policyOf = (source: Source): Policy => policies[source.startsWith('file:') ? 'file' : 'mqtt'];
  return {
    gate: new Gatekeeper({ policy, keys: () => keys.keys(), receiver, sealingKey: () => sealing }),
    keys,
    policy,
    sealingKey: () => sealing?.publicKey,
    rootOf: ({ source }, path) => rootOf(path, policyOf(source).hostPath),
    checkPath: async ({ source }, path) => {
      const wrong = await paths.leadsOut(path, policyOf(source));
      if (wrong !== undefined) throw new HeldBack('PolicyDenied', wrong);
    },
    reload: async () => {
      const before = policies;
      policies = readBoth(settings());
      const keysChanged = await keys.read();
      return keysChanged || JSON.stringify(policies) !== JSON.stringify(before);
    },
  };
}

const readBoth = (settings: PolicySettings): Readonly<Record<'file' | 'mqtt', Policy>> => ({
  file: readPolicy(settings['policy.file'], 'file'),
  mqtt: readPolicy(settings['policy.mqtt'], 'mqtt'),
});
