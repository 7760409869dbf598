/** The commands about keys, signatures and sealed Secrets, and their help. What does the work is loaded when it is used. */
import type { Command } from 'commander';
import type { Printer } from './get.ts';

export interface KeyWorld {
  readonly print: Printer;
  readonly stdin: () => Promise<Uint8Array>;
}

/** Adds `keygen`, `sign`, `verify` and `seal`. */
export function addKeyCommands(program: Command, { print, stdin }: KeyWorld, done: (code: number) => void): void {
  program
    .command('keygen')
    .description('make a key pair for signing (ed25519)')
    .option('--out <file>', 'of the private key, readable by you alone; the public one goes beside it, as ops.pub beside ops.key')
    .addHelpText('after', '\nThe public key goes into /etc/podsched/keys.d on the nodes; the private one to none of them.')
    .action(async (o: { readonly out?: string }) => done(await (await import('./keygen.ts')).keygen(o, print)));

  program
    .command('sign')
    .description('sign a manifest: a signature beside the file, or an envelope for a topic')
    .requiredOption('-f, --filename <file>', 'manifest; - is standard input')
    .requiredOption('--key <file>', 'private key, as keygen makes it')
    .option('--envelope', 'the manifest and its signature in one text, as topics take it')
    .option('--audience <who>', 'with --envelope: a node, group:<group> or *, put into the object')
    .option('--generation <number>', 'with --envelope: put into the object; it must not fall')
    .option('-o, --output <file>', 'where to; - is standard output (default: <file>.sig, with --envelope standard output)')
    .action(async ({ filename, envelope, ...o }: { readonly filename: string; readonly key: string; readonly envelope?: true }) =>
      done(await (await import('./sign.ts')).sign({ ...o, file: filename, envelope: envelope === true }, { stdin }, print)),
    );

  program
    .command('verify')
    .description('check a signature, as a node would')
    .requiredOption('-f, --filename <file>', 'manifest with its .sig beside it, or an envelope; - is standard input')
    .option('--keys <dir>', 'folder of public keys', '/etc/podsched/keys.d')
    .option('--node <name>', 'also whether this node would take it')
    .option('--group <name...>', 'groups of that node')
    .action(async (o: { readonly filename: string; readonly keys: string; readonly node?: string; readonly group?: readonly string[] }) => {
      const { filename: file, keys, node, group } = o;
      const options = { file, keys, ...(node !== undefined && { node }), ...(group !== undefined && { groups: group }) };
      done(await (await import('./verify.ts')).verify(options, { stdin }, print));
    });

  program
    .command('seal')
    .description('seal the values of a Secret for one node')
    .requiredOption('-f, --filename <file>', 'Secret; - is standard input')
    .option('--recipient <key>', "the node's sealing key, as its info tells it (podsched.dev/sealing-key)")
    .option('--info <file>', 'the same, out of what the node tells: podsched get node NAME -o yaml')
    .option('-o, --output <file>', 'where to (default: standard output)')
    .addHelpText('after', '\nWhat is sealed may lie anywhere: only that node can open it, and only as this Secret.')
    .action(
      async ({
        filename,
        ...o
      }: {
        readonly filename: string;
        readonly recipient?: string;
        readonly info?: string;
        readonly output?: string;
      }) => done(await (await import('./seal.ts')).seal({ ...o, file: filename }, { stdin }, print)),
    );
}
