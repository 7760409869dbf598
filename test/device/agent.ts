/** The real agent as a user runs it: the built bundle through the installed wrapper (its V8 flags), in folders of its own, ended only by its pid. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { mountsUnder } from './cleanup.ts';
import { type Daemon, mustRun, type RunResult, run, sleep, startDaemon } from './process.ts';

const bundle = new URL('../../bundle/podsched.cjs', import.meta.url).pathname;

/** The `podsched` command of an installation; it becomes the node process (same pid). */
const command = new URL('../../systemd/podsched', import.meta.url).pathname;

export interface AgentOptions {
  /** `mqtt.servers`; absent: no MQTT. */
  readonly servers?: readonly string[];
  readonly nodeName?: string;
  /** More keys of podsched.yaml; `mqtt` is merged, other keys replace. */
  readonly config?: Readonly<Record<string, unknown>> & { readonly mqtt?: Readonly<Record<string, unknown>> };
  /** More arguments for `podsched run`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The only permanent address of its board, which is another board then: seen in place of the machine's own network cards. */
  readonly mac?: string;
  /** False: folders and configuration are made, the agent is not started yet. */
  readonly started?: boolean;
}

export interface Agent {
  readonly dir: string;
  readonly nodeName: string;
  /** The manifest folder. */
  readonly manifests: string;
  readonly stateDir: string;
  readonly runDir: string;
  readonly podLogsDir: string;
  readonly socket: string;
  readonly configFile: string;
  readonly pid: number;
  running(): boolean;
  /** The exit code or signal of the run that is or was last. */
  exited(): Promise<number | NodeJS.Signals>;
  start(): void;
  kill9(): Promise<void>;
  /** SIGTERM; the exit code. Folders stay, so that it can be started again. */
  stop(): Promise<number | NodeJS.Signals>;
  restart(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Writes a manifest beside the folder and renames it in, as a careful editor does. */
  drop(file: string, text: string): void;
  removeManifest(file: string): void;
  /** The topic under this node, with the default prefix. */
  topic(rest: string): string;
  /** Runs another command of the bundle with this agent's configuration in its environment. */
  cli(...args: string[]): Promise<RunResult>;
  /** The same for one that goes on until it is ended. */
  begin(...args: string[]): Daemon;
  /** GET on the local API. */
  get(path: string): Promise<{ readonly status: number; readonly body: string }>;
  /** What the agent wrote on stderr and stdout so far. */
  log(): string;
  /** Ends it and removes its folders. */
  remove(): Promise<void>;
}

const ask = (socketPath: string, path: string): Promise<{ readonly status: number; readonly body: string }> =>
  new Promise((resolve, reject) => {
    const req = request({ socketPath, path, timeout: 10_000 }, (res) => {
      let body = '';
      res.setEncoding('utf8');
      res.on('data', (part: string) => {
        body += part;
      });
      res.on('end', () => resolve({ status: res.statusCode ?? 0, body }));
    });
    req.on('error', reject);
    req.end();
  });

/** In a mount namespace of its own, in which only what lies below /sys is no longer shared: one network card, with this permanent address. */
function onBoard(mac: string, dir: string): string[] {
  const card = join(dir, 'eth0');
  mkdirSync(join(card, 'device'), { recursive: true });
  writeFileSync(join(card, 'address'), `${mac}\n`);
  writeFileSync(join(card, 'addr_assign_type'), '0\n');
  const script = `mount --make-rprivate /sys && mount --bind ${dir} /sys/class/net && exec "$@"`;
  return ['unshare', '--mount', '--propagation', 'unchanged', 'sh', '-c', script, 'board', command];
}

/** Starts the bundle against a bed's containerd (or any endpoint). */
export async function startAgent(bed: { readonly endpoint: string }, o: AgentOptions = {}): Promise<Agent> {
  if (!existsSync(bundle)) throw new Error(`${bundle} is not there: npm run build`);
  const dir = mkdtempSync(join(tmpdir(), 'podsched-agent-'));
  const at = (name: string) => join(dir, name);
  const nodeName = o.nodeName ?? 'test-node';
  const { mqtt, ...config } = o.config ?? {};
  const runDir = typeof config.runDir === 'string' ? config.runDir : at('run');
  mkdirSync(at('manifests'), { mode: 0o700 });
  writeFileSync(
    at('podsched.yaml'),
    stringify({
      apiVersion: 'podsched.dev/v1',
      kind: 'PodschedConfiguration',
      nodeName,
      containerRuntimeEndpoint: bed.endpoint,
      staticPodPath: at('manifests'),
      stateDir: at('state'),
      runDir,
      podLogsDir: at('logs'),
      ...(o.servers === undefined ? {} : { mqtt: { servers: o.servers, ...mqtt } }),
      ...config,
    }),
    { mode: 0o600 },
  );
  const env = { ...process.env, PODSCHED_BUNDLE: bundle, ...o.env };
  let daemon: Daemon | undefined;
  let written = 0;
  const agent: Agent = {
    dir,
    nodeName,
    manifests: at('manifests'),
    stateDir: at('state'),
    runDir,
    podLogsDir: at('logs'),
    socket: join(runDir, 'podsched.sock'),
    configFile: at('podsched.yaml'),
    get pid() {
      return daemon?.pid ?? 0;
    },
    running: () => daemon?.running() === true,
    exited: async () => (await daemon?.exited) ?? 0,
    start: () => {
      if (daemon?.running() === true) return;
      const [program = command, ...before] = o.mac === undefined ? [] : onBoard(o.mac, at('board'));
      daemon = startDaemon(program, [...before, 'run', '--config', at('podsched.yaml'), ...(o.args ?? [])], {
        logFile: at('agent.log'),
        env,
      });
    },
    kill9: async () => {
      daemon?.signal('SIGKILL');
      await daemon?.exited;
    },
    stop: async () => (await daemon?.end(30_000)) ?? 0,
    restart: async () => {
      await agent.stop();
      agent.start();
    },
    signal: (signal) => daemon?.signal(signal),
    drop: (file, text) => {
      const temporary = at(`dropped-${written++}`);
      writeFileSync(temporary, text, { mode: 0o600 });
      renameSync(temporary, join(agent.manifests, file));
    },
    removeManifest: (file) => rmSync(join(agent.manifests, file)),
    topic: (rest) => `podsched/v1/nodes/${nodeName}/${rest}`,
    cli: (...args) => run(command, args, { env: { ...env, PODSCHED_RUN_DIR: runDir } }),
    begin: (...args) => startDaemon(command, args, { logFile: at('commands.log'), env: { ...env, PODSCHED_RUN_DIR: runDir } }),
    get: async (path) => {
      // like the commands: an agent that has just been started is waited for, also while nobody listens yet
      for (const end = performance.now() + 30_000; ; await sleep(50)) {
        const late = performance.now() > end || daemon?.running() !== true;
        try {
          const answer = await ask(agent.socket, path);
          if (late || answer.status !== 503 || !answer.body.includes('the agent is starting')) return answer;
        } catch (e) {
          if (late || !/^(ENOENT|ECONNREFUSED)$/.test((e as NodeJS.ErrnoException).code ?? '')) throw e;
        }
      }
    },
    log: () => (existsSync(at('agent.log')) ? readFileSync(at('agent.log'), 'utf8') : ''),
    remove: async () => {
      await agent.stop();
      // what is mounted for pods that still run: a deletion would go through a mount into what it shows
      for (const mount of mountsUnder(dir)) await mustRun('umount', ['-l', mount]);
      // containers that still run may write meanwhile
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  if (o.started !== false) agent.start();
  return agent;
}
