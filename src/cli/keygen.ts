/** `keygen`: a new pair of keys to sign with. The private one is readable to its owner only, and nothing that is there is ever overwritten. */
import { open, rm } from 'node:fs/promises';
import { newSigningKey } from '../policy/signing.ts';
import { codeOf } from '../world/errno.ts';
import { harmless } from '../world/terminal.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';

export interface KeygenOptions {
  /** Of the private key; the public one lies beside it. */
  readonly out?: string;
}

const defaultFile = 'podsched.key';

/** `ops.key` → `ops.pub`, `ops` → `ops.pub`. */
export const publicBeside = (path: string): string => `${path.replace(/\.(key|pem)$/, '')}.pub`;

/** Makes the pair and says what it is for. */
export async function keygen({ out = defaultFile }: KeygenOptions, print: Pick<Printer, 'out'>): Promise<number> {
  const publicFile = publicBeside(out);
  const { privateKeyPem, publicKeyPem, keyid } = newSigningKey();
  await writeNew(out, privateKeyPem, 0o600);
  try {
    await writeNew(publicFile, publicKeyPem, 0o644);
  } catch (e) {
    await rm(out, { force: true }); // half a pair is of no use
    throw e;
  }
  const name = harmless(publicFile);
  print.out(`private key: ${harmless(out)} (keep it to yourself)\npublic key:  ${name}\nkeyid:       ${keyid}\n`);
  print.out(`Put ${name} into /etc/podsched/keys.d/ of each node that shall trust it, and reload its agent (SIGHUP).\n`);
  return exitCodes.done;
}

async function writeNew(path: string, text: string, mode: number): Promise<void> {
  try {
    const file = await open(path, 'wx', mode);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (e) {
    const why = codeOf(e) === 'EEXIST' ? 'is there already, and is not overwritten' : `cannot be written (${codeOf(e)})`;
    throw new CommandError(exitCodes.failed, `${path} ${why}`, { cause: e });
  }
}
