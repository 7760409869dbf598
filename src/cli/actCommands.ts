/** The commands that change a pod or the node, and their help. Turns arguments into one call each; program.ts hands over what all commands share. */
import type { Command } from 'commander';
import type { PodAct } from '../operations/podActs.ts';
import type { AgentClient, WhereOptions } from './client.ts';
import type { Printer } from './get.ts';
import { bundle, decommission, identify, pinImages, resync } from './nodeActs.ts';
import { type PodActOptions, podAct } from './podActs.ts';

export interface ActCommands {
  readonly print: Printer;
  readonly client: (o: WhereOptions) => Promise<AgentClient>;
  /** Adds the options that say which agent is meant. */
  readonly asking: (command: Command) => Command;
  /** And the namespace. */
  readonly named: (command: Command) => Command;
  /** The exit code. */
  readonly done: (code: number) => void;
}

const acts: readonly (readonly [act: PodAct, description: string, help: string])[] = [
  [
    'restart',
    'restart the containers of a pod in place, or the whole pod as a new instance',
    '\nEach container ends by its grace and starts again: same pod, same volumes, restart count one more. It is no crash, so\nno back-off follows; a container that waits for its back-off starts at once.\n--new makes a new instance: emptyDirs are new, init containers run again, and a pod that has completed runs once more.\n\nExamples:\n  podsched restart web\n  podsched restart web -c app\n  podsched restart report --new',
  ],
  [
    'stop',
    'end a pod by its grace, and keep it away until it is started',
    '\nIt stays stopped over reboots. Its images stay, and edits of its manifest are taken over for its next start.\nA manifest that is removed and put back starts it, as podsched start does.',
  ],
  ['start', 'let a stopped pod run again, as a new instance', ''],
  [
    'hold',
    'let edits of a pod wait: what runs of it goes on',
    '\nA hold outlives reboots; podsched release ends it. Labels and the like are still taken over.\nThe annotation podsched.dev/hold: "true" in the manifest does the same.',
  ],
  ['release', 'let edits of a pod go on', '\nA revision that was rolled back is tried once more.'],
  [
    'rollback',
    'go back to the last revision of a pod that was Ready, and hold it there',
    '\nThe manifest stays as it is; podsched release tries its revision once more.\nThe annotation podsched.dev/rollback: 5m does it by itself when a revision is not Ready in time.',
  ],
];

/** Adds them to the program; `images` is the command of that name. */
export function addActCommands(program: Command, images: Command, { print, client, asking, named, done }: ActCommands): void {
  for (const [act, description, help] of acts) {
    const command = named(program.command(act).description(description).argument('<pod>', 'NAME, or pod/NAME'));
    if (act === 'restart')
      command.option('-c, --container <name>', 'only this container').option('--new', 'a new instance in place of this one');
    if (help !== '') command.addHelpText('after', help);
    command.action(async (pod: string, o: PodActOptions & WhereOptions) => done(await podAct(act, pod, o, await client(o), print)));
  }
  asking(program.command('resync').description('read all sources again, and tell everything again'))
    .option('--forget-lost', 'let go of pods that only a lost checkpoint keeps')
    .addHelpText(
      'after',
      '\nThe agent does both by itself; this is for a folder or broker that does not say what changed.\n--forget-lost ends pods that no source names and that were left running because the stored state could not be read.',
    )
    .action(async (o: WhereOptions & { readonly forgetLost?: true }) => done(await resync(o, await client(o), print)));
  asking(program.command('identify').description('let the light of the machine blink'))
    .option('--seconds <n>', 'for so long, at most 300; 10 by default')
    .action(async (o: WhereOptions & { readonly seconds?: string }) => done(await identify(o, await client(o), print)));
  asking(program.command('bundle').description('collect what helps to find out what is wrong, as JSON, without secrets'))
    .option('-o, --output <file>', 'into a new file that only you may read; - is standard output')
    .addHelpText(
      'after',
      '\nIn it: status and problems of all objects, events, conditions, configuration, versions, what the doctor finds, and what the\nkernel said of memory, USB, power and disks. No values of environments or Secrets, no passwords in URLs; at most 1 MiB.',
    )
    .action(async (o: WhereOptions & { readonly output?: string }) => done(await bundle(o, await client(o), print)));
  asking(program.command('decommission').description('take the node out of its fleet: what came over MQTT ends and is forgotten'))
    .option('--confirm <node>', 'the name of the node')
    .addHelpText(
      'after',
      '\nPods and objects from files go on. Whatever is still desired of it on the broker is taken again when the agent\nstarts anew: take that away too (podsched delete), or MQTT out of its configuration.',
    )
    .action(async (o: WhereOptions & { readonly confirm?: string }) => done(await decommission(o, await client(o), print)));

  for (const act of ['pin', 'unpin'] as const) {
    const description = act === 'pin' ? 'keep images that nothing uses, here or not yet' : 'let pinned images go again';
    asking(images.command(act).description(description).argument('<image...>', 'names')).action(
      async (names: readonly string[], o: WhereOptions) => done(await pinImages(act === 'pin', names, await client(o), print)),
    );
  }
}
