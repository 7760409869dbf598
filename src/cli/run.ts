/**
 * `podsched run`: configuration, log, agent, signals. Owns the decision which configuration runs, and keeps the last good one.
 * Loads nothing of the other commands; the agent is loaded once the configuration is known to be good.
 */
import { fstatSync, writeSync } from 'node:fs';
import type { RunningAgent } from '../agent.ts';
import { configurationKeys, type PodschedConfiguration } from '../api/configuration.ts';
import { problemText } from '../api/problems.ts';
import { machineAmounts } from '../node/machineAmounts.ts';
import { type LoadedOptions, loadOptions, type OptionTexts } from '../options.ts';
import { createLog, type Log, type LogOptions } from '../world/log.ts';
import { harmless } from '../world/terminal.ts';
import { type Choice, chooseConfiguration, type LastGood, planReload } from './choose.ts';
import { defaultConfigFile, keepLastGood, readConfigFile, readLastGood, readPointer } from './configFile.ts';
import { exitCodes } from './exitCodes.ts';
import { parseRunArguments } from './runArgs.ts';
import { version } from './version.ts';

/** A stop that takes longer has lost something; the pods run on in any case. */
const stopMs = 10_000;

export interface RunDeps {
  readonly loadAgent: () => Promise<Pick<typeof import('../agent.ts'), 'startAgent'>>;
  /** Told the log once there is one: what ends the process is written there. */
  readonly onLog: (log: Log) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes lines to stderr. */
  readonly write: (line: string) => void;
}

/** Runs the agent until it is told to stop. Yields the exit code. */
export async function run(args: readonly string[], deps: RunDeps): Promise<number> {
  const parsed = parseRunArguments(args);
  const signals = new Signals();
  const configFile = parsed.configFile ?? defaultConfigFile;
  const texts = { flags: parsed.flags, env: deps.env };
  const loaded = await load(configFile, texts);
  if (parsed.mistakes.length > 0) return refuse([...parsed.mistakes, ...loaded.problems.map((p) => problemText(p))], deps);
  const { choice, stored } = await choose(configFile, texts, loaded);
  if (choice.use === 'none') return refuse(choice.why, deps);

  const { config } = choice;
  const { log, setLevel } = createLog({ level: config['logging.level'], format: logFormat(config['logging.format']) }, deps.write);
  deps.onLog(log);
  log.info({ version, pid: process.pid, configFile }, 'podsched starts');
  tellWarnings(log, loaded);
  if (choice.use === 'lastGood') {
    for (const problem of choice.why) log.error({ problem }, 'the configuration is not used; the last good one runs');
  }

  const { startAgent } = await deps.loadAgent();
  const starting = startAgent({ config, log, version, conditions: choice.conditions, outgrown: () => signals.end('its size'), setLevel });
  let agent: RunningAgent | undefined;
  try {
    agent = await Promise.race([starting, signals.stopped.then(() => within(stopMs / 2, starting))]);
  } catch (error) {
    log.error({ error }, 'the agent cannot start');
    return exitCodes.failed;
  }
  if (agent === undefined) return exitCodes.done; // told to stop while something kept it from starting

  let good: LastGood = choice.use === 'new' ? choice.keep : (stored ?? { file: {}, overrides: {} });
  const keep = async (stateDir: string): Promise<void> => {
    try {
      await keepLastGood(configFile, stateDir, good);
    } catch (error) {
      log.warn({ error }, 'the configuration could not be kept as the last good one');
    }
  };
  if (choice.use === 'new') await keep(config.stateDir);

  let running = config;
  const startedAgent = agent;
  signals.onReload(async () => {
    const next = await load(configFile, texts);
    const plan = planReload(running, good, next);
    if (!plan.ok) {
      for (const problem of plan.why) log.error({ problem }, 'the configuration is not used; nothing was changed');
      startedAgent.reload(running, plan.conditions);
      return;
    }
    tellWarnings(log, next);
    running = plan.config;
    good = plan.keep;
    setLevel(running['logging.level']);
    startedAgent.reload(running, plan.conditions);
    log.info(plan.waiting.length === 0 ? {} : { waitsForRestart: plan.waiting }, 'the configuration was read again');
    await keep(config.stateDir);
  }, log);

  const signal = await signals.stopped;
  log.info({ signal }, 'podsched stops; its pods keep running');
  const stopping = agent.stop().then(() => true);
  // whoever starts it anew after a failure does so for its size, too
  if ((await within(stopMs, stopping)) === true) return signal === 'its size' ? exitCodes.failed : exitCodes.done;
  log.error({ seconds: stopMs / 1000 }, 'the agent did not stop in time and is ended');
  return exitCodes.failed;
}

type Texts = Pick<OptionTexts, 'flags' | 'env'>;

async function load(configFile: string, texts: Texts): Promise<LoadedOptions> {
  const read = await readConfigFile(configFile);
  if (read.ok) return loadOptions(read.file === undefined ? texts : { ...texts, file: read.file, machine: machineAmounts() });
  const { config: _, ...rest } = loadOptions(texts);
  return { ...rest, empty: false, problems: [read.problem, ...rest.problems] };
}

/** The small mover around chooseConfiguration: what is stored is read only when it may be needed. */
async function choose(
  configFile: string,
  texts: Texts,
  loaded: LoadedOptions,
): Promise<{ readonly choice: Choice; readonly stored: LastGood | undefined }> {
  if (loaded.config !== undefined && !loaded.empty) return { choice: chooseConfiguration(loaded, undefined, []), stored: undefined };
  const named = loaded.overrides.stateDir ?? loaded.fileSettings.stateDir ?? (await readPointer(configFile));
  const stored = await readLastGood(String(named ?? configurationKeys.stateDir?.default));
  const again =
    stored === undefined
      ? []
      : [
          loadOptions({ ...texts, settings: stored.file }),
          loadOptions({ flags: {}, env: {}, settings: { ...stored.file, ...stored.overrides } }),
        ];
  return { choice: chooseConfiguration(loaded, stored, again), stored };
}

function refuse(why: readonly string[], { write }: RunDeps): number {
  for (const line of why) write(`podsched: ${harmless(line)}\n`);
  return exitCodes.usage;
}

function tellWarnings(log: Log, loaded: LoadedOptions): void {
  for (const warning of loaded.warnings) log.warn({ key: warning.path }, problemText(warning));
}

/** SIGTERM and SIGINT stop, SIGHUP reads the configuration again, one reading after the other. Caught from the first moment on. */
class Signals {
  /** The signal, or what else ends it. */
  readonly stopped: Promise<NodeJS.Signals | 'its size'>;
  /** Ends it as a signal does. */
  end: (why: 'its size') => void = () => {};
  #reload: (() => void) | undefined;
  #missed = false;

  constructor() {
    this.stopped = new Promise((resolve) => {
      this.end = resolve;
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, resolve);
    });
    process.on('SIGHUP', () => {
      if (this.#reload === undefined) this.#missed = true;
      else this.#reload();
    });
  }

  onReload(step: () => Promise<void>, log: Log): void {
    let last = Promise.resolve();
    this.#reload = () => {
      last = last.then(step).catch((error) => log.error({ error }, 'the configuration could not be read again'));
    };
    if (this.#missed) this.#reload();
  }
}

function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Text on a terminal, journald priorities under systemd, JSON lines elsewhere. */
function logFormat(wanted: PodschedConfiguration['logging.format']): LogOptions['format'] {
  if (wanted !== 'auto') return wanted;
  if (process.stderr.isTTY) return 'text';
  return isJournal() ? 'journal' : 'json';
}

/** systemd names the journal's socket by device and inode; a redirected stderr is another one. */
function isJournal(): boolean {
  const named = process.env.JOURNAL_STREAM;
  if (named === undefined) return false;
  try {
    const { dev, ino } = fstatSync(2);
    return named === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** Synchronously, so that the last words before an end are there. A reader that is gone or too slow costs lines, not the agent. */
export function writeStderr(line: string): void {
  let rest = Buffer.from(line);
  for (let tries = 0; rest.length > 0 && tries < 100; tries++) {
    try {
      rest = rest.subarray(writeSync(2, rest));
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code !== 'EAGAIN') return;
    }
  }
}
