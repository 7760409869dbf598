/** The street: arguments to a command, and its exit code. `run` loads the agent and none of the tables; every other command the reverse. */
import type { Log } from './world/log.ts';

let log: Log | undefined;

async function main(args: readonly string[]): Promise<void> {
  const asksForHelp = args.includes('--help') || args.includes('-h');
  if (args[0] === 'run' && !asksForHelp) {
    const { run, writeStderr } = await import('./cli/run.ts');
    const code = await run(args.slice(1), {
      loadAgent: () => import('./agent.ts'),
      onLog: (made) => {
        log = made;
      },
      env: process.env,
      write: writeStderr,
    });
    // its log is written synchronously; a connection that lingers keeps nobody
    process.exit(code);
  }
  const { runCommand } = await import('./cli/program.ts');
  // not exit(): what is still to be written to a pipe is written
  process.exitCode = await runCommand(args);
}

/** An error nobody caught ends the process: systemd starts it again, the containers never notice. */
function fail(error: unknown): never {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (log === undefined) console.error(`podsched: ${text}`);
  else log.error({ error, stack: text }, 'an unexpected error ends the agent');
  process.exit(1);
}

process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);
// `podsched get pods | head` closes the pipe: nobody reads on, so nothing is wrong
process.stdout.on('error', (e: NodeJS.ErrnoException) => (e.code === 'EPIPE' ? process.exit(0) : fail(e)));

main(process.argv.slice(2)).catch(fail);
