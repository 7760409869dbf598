/** The commands about a fleet and about desired state, and the options that lead to another machine. What does the work is loaded when it is used. */
import type { Command } from 'commander';
import { isAudience } from '../policy/trust.ts';
import type { ApplyOptions, FilesWorld, PublishOptions, ScopeOptions } from './apply.ts';
import type { WhereOptions } from './client.ts';
import type { DeleteOptions } from './delete.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { ForgetOptions } from './forget.ts';
import { type Output, outputs, type Printer } from './get.ts';
import type { RemoteBroker } from './remoteBroker.ts';
import type { RemoteOptions } from './remoteOptions.ts';

export interface FleetWorld extends FilesWorld {
  readonly print: Printer;
}

type Done = (code: number) => void;

/** How a broker is reached. */
export const withBrokerOptions = (command: Command): Command =>
  command
    .option('--server <url>', 'broker of the fleet, as mqtts://broker.example:8883; several by comma are tried in order')
    .option('--username <name>', 'name at the broker')
    .option('--password-file <file>', 'file with the password')
    .option('--ca-file <file>', 'authorities that the certificate of the broker is checked by')
    .option('--cert-file <file>', 'own certificate')
    .option('--key-file <file>', 'key of the own certificate')
    .option('--prefix <prefix>', 'prefix of all topics (default: podsched/v1)')
    .option('--insecure', 'mqtt:// without encryption, also beyond loopback')
    .option('--requester <name>', 'name under which answers are read (default: the own one at the broker)');

/** The same for a question to one node. */
export const withNodeOption = (command: Command): Command =>
  withBrokerOptions(command.option('--node <name>', 'ask this node over MQTT, in place of the agent of this machine'));

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

const scoped = (command: Command): Command =>
  withBrokerOptions(
    command
      .option('--node <name>', 'the topic of this node, in place of the manifest folder of this machine')
      .option('--group <name>', 'the topic of this group')
      .option('--all', 'the topic of all nodes'),
  );

const publishing = (command: Command): Command =>
  command
    .option('--sign <file>', 'private key: what is published is signed, the index too')
    .option('--audience <who>', 'whom an object is for: a node, group:<group> or *; a signed one is for its topic, if nothing else is said')
    .option('--generation <number>', 'of the objects (default: one more than before, where there is one)')
    .option('--no-index', 'publish without looking, and leave the index of what should be there as it is');

interface Given extends RemoteOptions, ScopeOptions, WhereOptions {
  readonly filename?: readonly string[];
  readonly sign?: string;
  readonly audience?: string;
  readonly generation?: string;
  /** commander's word for `--no-index`. */
  readonly index?: boolean;
}

/** What is published, and how; reads the key. */
async function publishOptions({ sign, audience, generation, index }: Given): Promise<PublishOptions> {
  if (generation !== undefined && !/^\d{1,15}$/.test(generation))
    throw new CommandError(exitCodes.usage, `--generation: expected a whole number, got ${JSON.stringify(generation)}`);
  if (audience !== undefined && !isAudience(audience))
    throw new CommandError(exitCodes.usage, `--audience: expected a node, group:<group> or *, got ${JSON.stringify(audience)}`);
  return {
    ...(sign !== undefined && { sign: await (await import('./remoteOpen.ts')).signer(sign) }),
    ...(audience !== undefined && { audience }),
    ...(generation !== undefined && { generation: Number(generation) }),
    ...(index === false && { noIndex: true }),
  };
}

/** What is said of topics means nothing to a folder, and somebody who named a broker did not mean this machine. */
function thisFolder(o: Given & { readonly tombstone?: true }): void {
  const { sign, audience, generation, index, tombstone, server } = o;
  const said = Object.entries({ sign, audience, generation, 'no-index': index === false || undefined, tombstone, server }).find(
    ([, value]) => value !== undefined,
  );
  if (said !== undefined)
    throw new CommandError(exitCodes.usage, `--${said[0]} is about topics: of which? --node NAME, --group NAME or --all says it`);
}

function files(o: Given): readonly string[] {
  if (o.filename === undefined) throw new CommandError(exitCodes.usage, 'which file? -f FILE (a folder, or - for standard input)');
  return o.filename;
}

/** Adds `apply`, `delete`, `diff`, `rollout` and `forget`. */
export function addFleetCommands(program: Command, world: FleetWorld, done: Done): void {
  const { print } = world;
  const withRemote = async <T>(o: RemoteOptions, work: (remote: RemoteBroker) => Promise<T>): Promise<T> =>
    (await import('./remoteOpen.ts')).withRemote(o, world.env, work);
  const named = (command: Command): Command =>
    command.option('-f, --filename <file>', 'file, folder, or - for standard input; may be given several times', collect);
  const local = (command: Command): Command => command.option('--config <file>', 'configuration file that names the manifest folder');

  publishing(
    local(scoped(named(program.command('apply').description('put objects into the manifest folder, or onto the topics of a fleet')))),
  )
    .addHelpText(
      'after',
      '\nExamples:\n  podsched apply -f web.yaml\n  podsched apply -f web.yaml --group attic --server mqtts://broker\n\nInto the folder each object gets a file of its own, <namespace>.<name>.<kind>.yaml.',
    )
    .action(async (o: Given) => {
      const { applyLocal, applyRemote, scopeOf } = await import('./apply.ts');
      const scope = scopeOf(o);
      const options: ApplyOptions = { ...o, filename: files(o) };
      if (scope === undefined) {
        thisFolder(o);
        return done(await applyLocal(options, world, print));
      }
      const publish = { filename: options.filename, ...(await publishOptions(o)) };
      return withRemote(o, async (remote) => done(await applyRemote(publish, scope, { remote, stdin: world.stdin }, print)));
    });

  publishing(
    local(
      scoped(
        named(
          program
            .command('delete')
            .description('take objects out of the manifest folder, or off the topics of a fleet')
            .argument('[name...]', 'POD, configmap/NAME or secret/NAME'),
        ),
      ),
    ),
  )
    .option('-n, --namespace <namespace>', 'namespace', 'default')
    .option('--tombstone', 'leave a message that says so: where no index is kept, a node that is away long sees only that')
    .addHelpText('after', '\nA file is removed when it holds nothing else.')
    .action(async (names: readonly string[], o: Given & { readonly namespace: string; readonly tombstone?: true }) => {
      const { scopeOf } = await import('./apply.ts');
      const { deleteLocal, deleteRemote } = await import('./delete.ts');
      const scope = scopeOf(o);
      const { filename, namespace, tombstone, config } = o;
      const options: DeleteOptions = {
        namespace,
        ...(filename !== undefined && { filename }),
        ...(tombstone === true && { tombstone }),
        ...(config !== undefined && { config }),
      };
      if (scope === undefined) {
        thisFolder(o);
        return done(await deleteLocal(names, options, world, print));
      }
      const publish = { ...options, ...(await publishOptions(o)) };
      return withRemote(o, async (remote) => done(await deleteRemote(names, publish, scope, { remote, stdin: world.stdin }, print)));
    });

  local(scoped(named(program.command('diff').description('show what apply would change; ends with 1 when there is something')))).action(
    async (o: Given) => {
      const { scopeOf } = await import('./apply.ts');
      const { diffLocal, diffRemote } = await import('./diff.ts');
      const scope = scopeOf(o);
      const options: ApplyOptions = { ...o, filename: files(o) };
      if (scope === undefined) {
        thisFolder(o);
        return done(await diffLocal(options, world, print));
      }
      return withRemote(o, async (remote) => done(await diffRemote(options, scope, { remote, stdin: world.stdin }, print)));
    },
  );

  addRolloutCommands(program, world, done);

  withBrokerOptions(
    program.command('forget').description('clear what a node that will not come back has told the broker').argument('<node>', 'its name'),
  )
    .option('--force', 'also when it may be alive')
    .option('--ha-prefix <prefix>', 'prefix of Home Assistant', 'homeassistant')
    .addHelpText(
      'after',
      '\nIt is listened for first: over two of its heartbeats, or for a moment when it has said goodbye. What is desired of it stays.',
    )
    .action(async (node: string, o: RemoteOptions & ForgetOptions) => {
      const { forget } = await import('./forget.ts');
      return withRemote(o, async (remote) => done(await forget(node, o, remote, print)));
    });
}

function addRolloutCommands(program: Command, world: FleetWorld, done: Done): void {
  const { print } = world;
  const rollout = program.command('rollout').description('bring objects onto a fleet wave by wave');
  type Module = typeof import('./rollout.ts');
  const act = async (o: RemoteOptions, work: (module: Module, remote: RemoteBroker) => Promise<number>): Promise<void> => {
    const [module, { withRemote }] = await Promise.all([import('./rollout.ts'), import('./remoteOpen.ts')]);
    return withRemote(o, world.env, async (remote) => done(await work(module, remote)));
  };
  publishing(
    withBrokerOptions(
      rollout
        .command('create')
        .description('publish objects that are taken wave by wave; nothing is open yet')
        .argument('<id>', 'a new one')
        .option('--group <name>', 'the nodes of this group')
        .option('--all', 'all nodes')
        .option('-f, --filename <file>', 'file, folder, or - for standard input; may be given several times', collect)
        .option(
          '--wave <wave>',
          'labels and percentage of one wave, in their order: site=attic:10%, 25%, site=attic (default: 100%)',
          collect,
        )
        .option('--bake <duration>', 'how long a wave is watched after it is ready, as 10m')
        .option('--abort-after <nodes>', 'so many nodes that fail end it (default: 1)'),
    ),
  )
    .addHelpText(
      'after',
      "\nExample:\n  podsched rollout create web-2 --group cams -f web.yaml --wave 'site=attic:10%' --wave 100% --bake 10m --abort-after 3",
    )
    .action(async (id: string, o: Given & { readonly wave?: readonly string[]; readonly bake?: string; readonly abortAfter?: string }) => {
      const { group, all, wave = [], bake, abortAfter } = o;
      const options = {
        ...(group !== undefined && { group }),
        ...(all === true && { all }),
        filename: files(o),
        wave,
        ...(bake !== undefined && { bake }),
        ...(abortAfter !== undefined && { abortAfter }),
        ...(await publishOptions(o)),
      };
      return act(o, ({ createRollout }, remote) => createRollout(id, options, { remote, stdin: world.stdin }, print));
    });
  withBrokerOptions(
    rollout.command('run').alias('continue').description('open wave after wave, as long as it goes well').argument('<id>', 'its name'),
  )
    .addHelpText('after', '\nIt may be ended and run again at any time, here or elsewhere: everything it needs is on the broker.')
    .action((id: string, o: RemoteOptions) => act(o, ({ runRollout }, remote) => runRollout(id, remote, print)));
  withBrokerOptions(rollout.command('status').description('show rollouts, or the nodes of one').argument('[id]', 'its name'))
    .option('-o, --output <format>', `how to print it: ${outputs.join(', ')}`)
    .action((id: string | undefined, o: RemoteOptions & { readonly output?: string }) => {
      const output = outputs.find((known): known is Output => known === o.output);
      if (o.output !== undefined && output === undefined)
        throw new CommandError(exitCodes.usage, `--output: expected one of ${outputs.join(', ')}, got ${JSON.stringify(o.output)}`);
      return act(o, ({ showRollouts }, remote) => showRollouts(id, output === undefined ? {} : { output }, remote, print));
    });
  withBrokerOptions(
    rollout
      .command('open')
      .description('open the next wave by hand')
      .argument('<id>', 'its name')
      .argument('[wave]', 'or all up to this one'),
  ).action((id: string, wave: string | undefined, o: RemoteOptions) =>
    act(o, ({ openRollout }, remote) => openRollout(id, wave, remote, print)),
  );
  withBrokerOptions(
    rollout.command('abort').description('open no further wave; nodes keep what they took').argument('<id>', 'its name'),
  ).action((id: string, o: RemoteOptions) => act(o, ({ abortRollout }, remote) => abortRollout(id, remote, print)));
}
