/**
 * The commands and their help. Owns no truth: it turns arguments into one call each, and an error into one line and an exit code.
 * Door of commander. `run` is only described here; main starts it without loading this file.
 */
import { Command, CommanderError, Option } from 'commander';
import { harmless } from '../world/terminal.ts';
import { addActCommands } from './actCommands.ts';
import { type AgentClient, agentClient, socketPath, type WhereOptions } from './client.ts';
import { defaultConfigFile } from './configFile.ts';
import { byteOutput, ownConsole } from './console.ts';
import { type DebugOptions, debug } from './debug.ts';
import type { DoctorOptions } from './doctor.ts';
import { type ExecOptions, exec } from './exec.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { addFleetCommands, withNodeOption } from './fleetCommands.ts';
import { get, type Output, outputs, type Printer } from './get.ts';
import { importImages, pruneImages, pullImages } from './images.ts';
import { addKeyCommands } from './keyCommands.ts';
import { type ByteOutput, type LogOptions, logs } from './logs.ts';
import type { RemoteOptions } from './remoteOptions.ts';
import type { Console } from './session.ts';
import { describe, showWhy } from './show.ts';
import { type TopNodeOptions, type TopPodsOptions, topNode, topPods } from './top.ts';
import { validate } from './validate.ts';
import { version } from './version.ts';

export interface ProgramWorld {
  readonly print: Printer;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: () => Promise<Uint8Array>;
  /** For what is no text of our own. */
  readonly bytes: ByteOutput;
  /** The near end of sessions. */
  readonly console: () => Console;
}

const realWorld: ProgramWorld = {
  print: {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    nowMs: () => Date.now(),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  },
  env: process.env,
  stdin: async () => {
    const parts: Buffer[] = [];
    for await (const part of process.stdin) parts.push(part as Buffer);
    return Buffer.concat(parts);
  },
  bytes: byteOutput(process.stdout),
  console: ownConsole,
};

/** Runs one command to its end. Never rejects: what is wrong is a line on stderr and an exit code. */
export async function runCommand(args: readonly string[], world: ProgramWorld = realWorld): Promise<number> {
  let code: number = exitCodes.done;
  const open: AgentClient[] = [];
  const program = commands(
    world,
    (c) => {
      code = c;
    },
    open,
  );
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (e) {
    // commander has said what is wrong
    if (e instanceof CommanderError) return e.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    if (e instanceof CommandError) {
      world.print.err(`podsched: ${harmless(e.message)}\n`);
      return e.code;
    }
    world.print.err(`podsched: ${harmless(e instanceof Error ? e.message : String(e))}\n`);
    return exitCodes.failed;
  } finally {
    for (const client of open) await client.close?.();
  }
}

interface ClientOptions extends WhereOptions, RemoteOptions {
  readonly node?: string;
  readonly sign?: string;
}

interface NamespaceOptions extends ClientOptions {
  readonly namespace: string;
}

/** `open`: gets each client that is made, for whoever ends it. */
function commands(world: ProgramWorld, done: (code: number) => void, open: AgentClient[]): Command {
  const { print } = world;
  const program = new Command('podsched')
    .description('Runs Kubernetes static pods from a folder of manifests on containerd, and tells their status over MQTT.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .configureOutput({
      writeOut: print.out,
      writeErr: print.err,
      outputError: (text, write) => write(text.replace(/^error: /, 'podsched: ')),
    })
    .showHelpAfterError('(podsched --help lists the commands)')
    .exitOverride();
  program.addHelpText(
    'after',
    '\nExit codes: 0 done, 1 failed, 2 usage or configuration, 3 not found, 4 agent, broker or node unreachable.\nThe commands ask the agent of this machine on its socket, or with --node NAME --server URL another one over MQTT. validate, doctor,\napply, delete and diff need no agent here; get nodes --server lists a whole fleet.',
  );

  const client = async (o: ClientOptions): Promise<AgentClient> => {
    if (o.node === undefined && o.server !== undefined)
      throw new CommandError(exitCodes.usage, '--server: of which node? --node NAME says it');
    const made =
      o.node === undefined
        ? agentClient(await socketPath(o, world.env))
        : await (await import('./remoteOpen.ts')).openNode(o.node, o, world.env);
    open.push(made);
    return made;
  };
  const here = (command: Command): Command =>
    command
      .option('--run-dir <dir>', 'run folder of the agent, in which its socket is')
      .option('--config <file>', 'configuration file that names the run folder');
  const asking = (command: Command): Command =>
    withNodeOption(here(command)).option('--sign <file>', 'with --node: private key that signs the command');
  const inNamespace = (command: Command): Command => command.option('-n, --namespace <namespace>', 'namespace', 'default');
  const named = (command: Command): Command => inNamespace(asking(command));
  /** For what only the machine itself can do: the way over MQTT is known, to be refused in words. */
  const onlyHere = (command: Command): Command =>
    here(command).addOption(new Option('--node <name>').hideHelp()).addOption(new Option('--server <url>').hideHelp());
  const localClient = (what: string, o: ClientOptions): Promise<AgentClient> => {
    if (o.node === undefined && o.server === undefined) return client(o);
    throw new CommandError(exitCodes.usage, `${what} cannot be done over MQTT: it needs the machine itself`);
  };

  const run = program
    .command('run')
    .description('run the agent')
    .option('--config <file>', 'configuration file', defaultConfigFile)
    .option('--<key>=<value>', 'any key of the configuration, as --mqtt.servers=a,b')
    .action(() => {});
  run.addHelpText(
    'after',
    '\nOrder: flag, environment (PODSCHED_MQTT_SERVERS), file, default. SIGTERM and SIGINT stop the agent, its pods keep running;\nSIGHUP reads the configuration again.',
  );

  named(
    program
      .command('get')
      .description('list pods, nodes, events, files, images, configmaps or secrets')
      .argument('<kind>', 'pods, nodes, events, files, images, configmaps or secrets')
      .argument('[name...]', 'only these'),
  )
    .option('-A, --all-namespaces', 'of all namespaces')
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(outputs))
    .option('-w, --watch', 'go on with what changes')
    .addHelpText(
      'after',
      '\nExamples:\n  podsched get pods -A\n  podsched get pods web cam -o yaml\n  podsched get files          what each manifest file became\n  podsched get nodes --server mqtts://broker.example:8883    every node of a fleet',
    )
    .action(
      async (
        kind: string,
        names: readonly string[],
        o: NamespaceOptions & { readonly allNamespaces?: true; readonly output?: Output; readonly watch?: true },
      ) => {
        if (o.server !== undefined && o.node === undefined) {
          const [{ getFleet }, { withRemote }] = await Promise.all([import('./fleet.ts'), import('./remoteOpen.ts')]);
          return withRemote(o, world.env, async (remote) =>
            done(await getFleet(kind, names, { ...o, watch: o.watch === true }, remote, print)),
          );
        }
        done(await get(kind, names, { ...o, allNamespaces: o.allNamespaces === true, watch: o.watch === true }, await client(o), print));
      },
    );

  named(
    program
      .command('describe')
      .description('tell all about a pod or the node, its events included')
      .argument('<kind>', 'pod or node; also pod/NAME, or the NAME of a pod alone')
      .argument('[name]', 'of the pod; of the node it is not needed'),
  ).action(async (kind: string, name: string | undefined, o: NamespaceOptions) =>
    done(await describe(kind, name, o.namespace, await client(o), print)),
  );

  named(
    program
      .command('why')
      .description('say the one reason why a pod is not running, and what would help')
      .argument('<pod>', 'NAME; also configmap/NAME or secret/NAME'),
  )
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(['json', 'yaml']))
    .action(async (pod: string, o: NamespaceOptions & { readonly output?: 'json' | 'yaml' }) =>
      done(await showWhy(pod, o, await client(o), print)),
    );

  named(program.command('logs').description('print the log of a container').argument('<pod>', 'NAME, or pod/NAME'))
    .option('-c, --container <name>', 'of this container; not needed when there is one, or the manifest names the default')
    .option('-f, --follow', 'go on with what comes, until the container ends')
    .option('-p, --previous', 'of the instance that ran before')
    .option('--tail <lines>', 'only so many of the last lines')
    .option('--since <duration>', 'only what is newer, as 5s, 2m or 3h')
    .option('--since-time <time>', 'only what is newer than a time, as 2026-01-01T00:00:00Z')
    .option('--timestamps', 'each line begins with its time')
    .option('--limit-bytes <bytes>', 'no more than so many bytes')
    .addHelpText(
      'after',
      '\nExamples:\n  podsched logs web --tail 20 -f\n  podsched logs web -p         why it crashed\n\nOver MQTT (--node) the last 1,000 lines, if nothing else is said, and with -f the last 10.',
    )
    .action(async (pod: string, o: LogOptions & ClientOptions) => done(await logs(pod, o, await client(o), world.bytes)));

  const session = () => ({ print, console: world.console() });
  const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];
  named(
    program
      .command('exec')
      .description('run a command in a container')
      .argument('<pod>', 'NAME, or pod/NAME')
      .argument('[command...]', 'after --: what to run, with its arguments'),
  )
    .option('-c, --container <name>', 'in this container; else in the one the manifest names as default, or the first')
    .option('-i, --stdin', 'pass standard input on')
    .option('-t, --tty', 'with a terminal')
    .addHelpText(
      'after',
      '\nExamples:\n  podsched exec web -- ls /data\n  podsched exec -it web -c app -- sh\n\nThe exit code is that of the command. Over MQTT (--node) there is neither -i nor -t: what the command said comes when it has\nended, 256 KiB of it at most, and after a minute it is ended.',
    )
    .action(async (pod: string, command: readonly string[], o: ExecOptions & ClientOptions) =>
      done(await exec(pod, command, o, await client(o), session())),
    );

  inNamespace(
    onlyHere(
      program
        .command('debug')
        .description('add a container to a running pod, to look with')
        .argument('<pod>', 'NAME, or pod/NAME')
        .argument('[command...]', "after --: what to run instead of the image's own"),
    ),
  )
    .option('--image <image>', 'image of the container')
    .option('-c, --container <name>', 'name of the container')
    .option('--target <container>', 'see the processes of this container')
    .option('-i, --stdin', 'be in it: pass standard input on, see what it says')
    .option('-t, --tty', 'with a terminal')
    .option('--env <key=value>', 'environment variable; may be given several times', collect)
    .addHelpText(
      'after',
      '\nExample:\n  podsched debug -it web --image busybox:1 --target app -- sh\n\nThe container stays in the pod until the pod ends.',
    )
    .action(async (pod: string, command: readonly string[], o: DebugOptions & ClientOptions) =>
      done(await debug(pod, command, o, await localClient('debug', o), session())),
    );

  const top = program.command('top').description('what pods or the node use now');
  named(
    top.command('pods').alias('pod').alias('po').description('processor and memory of running pods').argument('[name...]', 'only these'),
  )
    .option('-A, --all-namespaces', 'of all namespaces')
    .option('--containers', 'a row for each container')
    .addOption(new Option('--sort-by <what>', 'the greatest first').choices(['cpu', 'memory']))
    .addOption(new Option('--probes', 'what the probes of each container cost, the costliest first').conflicts('sortBy'))
    .addOption(new Option('-o, --output <format>', 'how to print it; wide: with limits').choices(outputs))
    .option('-w, --watch', 'again every 2 s')
    .addHelpText(
      'after',
      '\nThe processor is measured over the time since the last question, or over one second. MEMORY is what the kernel cannot take back at once.\nMEAN is what a probe takes, PER MINUTE what all its answers together take of a minute; waiting for a turn is not counted.',
    )
    .action(async (names: readonly string[], o: TopPodsOptions & ClientOptions) => done(await topPods(names, o, await client(o), print)));
  asking(top.command('node').alias('nodes').alias('no').description('processor and memory of this node').argument('[name]', 'of this node'))
    .addOption(new Option('-o, --output <format>', 'how to print it; wide: with temperature, disk and swap').choices(outputs))
    .option('-w, --watch', 'again every 2 s')
    .addHelpText('after', '\nCPU% and MEMORY% are of what pods may use (allocatable).')
    .action(async (name: string | undefined, o: TopNodeOptions & ClientOptions) => done(await topNode(name, o, await client(o), print)));

  const images = program.command('images').description("the node's images: list, pull, import, pin or remove them");
  asking(images.command('list').alias('ls').description('list the images of this node').argument('[name...]', 'only these'))
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(outputs))
    .addHelpText(
      'after',
      '\nPINNED says why an image is never removed: pod (a manifest names it), person (images pin), imported, sandbox, runtime.',
    )
    .action(async (names: readonly string[], o: WhereOptions & { readonly output?: Output }) =>
      done(await get('images', names, { ...o, namespace: 'default', allNamespaces: true, watch: false }, await client(o), print)),
    );
  asking(images.command('pull').description('pull images now, with the credentials of the node').argument('<image...>', 'names')).action(
    async (names: readonly string[], o: WhereOptions) => done(await pullImages(names, await client(o), print)),
  );
  onlyHere(
    images
      .command('import')
      .description('take images in from archives on this machine, and keep them')
      .argument('<file...>', 'archives of docker save or ctr images export, also gzip or zstd'),
  ).action(async (files: readonly string[], o: ClientOptions) =>
    done(await importImages(files, await localClient('importing an archive', o), print)),
  );
  asking(images.command('prune').description('remove every image that nothing uses and nothing pins'))
    .option('--dry-run', 'only say what would go')
    .addHelpText(
      'after',
      '\nAn image stays while a container is made of it, also an ended one, while a manifest names it, and when it was imported.\nThis does not ask how full the disk is, and works where imageGCHighThresholdPercent is 100, too.',
    )
    .action(async (o: WhereOptions & { readonly dryRun?: true }) => done(await pruneImages(o.dryRun === true, await client(o), print)));

  withNodeOption(
    program
      .command('doctor')
      .description('look whether this machine is fit to run pods, without the agent; with --node another machine, by its agent')
      .option('--fix', 'let containerd take the sandbox image that podsched brings')
      .option('--only-fix', 'the same, and look at nothing')
      .option('--restart', 'with either: restart containerd when its file was changed (pods keep running)')
      .option('--config <file>', 'configuration file of podsched')
      .option('--containerd-config <file>', 'configuration file of containerd', '/etc/containerd/config.toml')
      .option('--container-runtime-endpoint <endpoint>', 'socket of containerd')
      .addHelpText('after', '\n--fix changes one line of the file, keeps a copy beside it, and prints what to add where it cannot.'),
  ).action(async (o: DoctorOptions & ClientOptions) => {
    if (o.node === undefined) return done(await (await import('./doctor.ts')).doctor(o, print));
    if (o.fix === true || o.onlyFix === true || o.restart === true)
      throw new CommandError(exitCodes.usage, 'over MQTT (--node) the doctor looks, and repairs nothing');
    const { printFindings } = await import('./findings.ts');
    done(printFindings((await (await client(o)).doctor?.()) ?? [], print));
  });

  addActCommands(program, images, { print, client, asking, named, done });
  addFleetCommands(program, world, done);
  addKeyCommands(program, world, done);

  program
    .command('validate')
    .description('name every mistake in manifests or podsched.yaml, without an agent')
    .argument('<file...>', 'files or folders; - is standard input')
    .option('--strict', 'refuse unknown fields, as strict: true does')
    .action(async (files: string[], o: { readonly strict?: true }) =>
      done(await validate(files, { strict: o.strict === true, stdin: world.stdin }, print)),
    );

  program
    .command('version')
    .description('print the version')
    .action(() => print.out(`podsched ${version}\n`));
  return program;
}
