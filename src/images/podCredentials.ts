/** What a registry is shown for one image of one pod: its own pull secrets, then the node's credentials. Tells what is wrong with a secret. */
import { createHash } from 'node:crypto';
import type { DesiredPod } from '../api/desired.ts';
import type { ObjectLookup } from '../api/references.ts';
import { type Credential, matching, readPullSecret } from './credentials.ts';
import type { CredentialProblem } from './credentialsFolder.ts';

export interface CredentialDeps {
  /** The node's own credentials. Left out: none. */
  readonly credentials?: { all(): Promise<readonly Credential[]>; problems(): readonly CredentialProblem[] };
  /** Secrets, as a pod of that source sees them. Left out: there are none. */
  readonly objects?: ObjectLookup;
  readonly event: (pod: DesiredPod, container: string | undefined, type: 'Normal' | 'Warning', reason: string, message: string) => void;
}

/** Those that fit the image, in the order of trying. A secret that is missing or broken is told, as the kubelet tells it, and left out. */
export async function podCredentials(deps: CredentialDeps, desired: DesiredPod, image: string): Promise<readonly Credential[]> {
  const tell = (text: string) => deps.event(desired, undefined, 'Warning', 'FailedToRetrieveImagePullSecret', text);
  const missing: string[] = [];
  const own: Credential[] = [];
  for (const { name } of desired.pod.spec.imagePullSecrets ?? []) {
    if (!name) continue;
    const secret = deps.objects?.('Secret', desired.namespace, name, desired.source);
    if (secret?.kind !== 'Secret') {
      missing.push(name);
      continue;
    }
    const { credentials, problems } = readPullSecret(secret);
    own.push(...credentials);
    if (problems.length > 0) tell(`Image pull secret ${name} cannot be used as it is: ${problems.join('; ')}`);
  }
  if (missing.length > 0)
    tell(`Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`);
  return [...matching(image, own), ...(await nodeCredentials(deps, image))];
}

/** Of the node alone, for an image that no pod asks for. */
export const nodeCredentials = async ({ credentials }: CredentialDeps, image: string): Promise<readonly Credential[]> =>
  matching(image, (await credentials?.all()) ?? []);

/** The same for the same credentials, and no way back to them. */
export const fingerprint = (credentials: readonly Credential[]): string =>
  createHash('sha256')
    .update(JSON.stringify(credentials.map((c) => c.auth)))
    .digest('hex');
