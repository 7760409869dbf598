/** This process's own terminal or pipes, for sessions. Whatever ends the process, the terminal is given back as it was. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { ByteOutput } from './logs.ts';
import type { Console } from './session.ts';

const endings = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

export const byteOutput = (stream: NodeJS.WriteStream): ByteOutput => ({
  isTerminal: stream.isTTY === true,
  write: async (bytes) => {
    if (!stream.write(bytes)) await once(stream, 'drain');
  },
});

export const ownConsole = (): Console => {
  const { stdin, stdout, stderr } = process;
  return {
    inputIsTerminal: stdin.isTTY === true,
    read: ({ data, end }) => {
      let over = false;
      const onData = (bytes: Buffer): void => {
        stdin.pause();
        data(bytes).then(
          () => over || stdin.resume(),
          () => {}, // a session that broke says so itself
        );
      };
      stdin.on('data', onData).on('end', end).on('error', end);
      return () => {
        over = true;
        stdin.off('data', onData).off('end', end);
        stdin.pause();
        // a read that waits for keys keeps nobody here
        stdin.unref?.();
      };
    },
    raw: () => {
      stdin.setRawMode(true);
      // Node leaves the terminal to write a carriage return before each newline; full-screen programs mean a newline alone. It goes back with
      // the rest. Without stty only those look odd.
      spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
      const restore = (): void => {
        if (!stdin.destroyed) stdin.setRawMode(false);
      };
      const undo = (): void => {
        process.off('exit', restore);
        for (const signal of endings) process.off(signal, onSignal);
        restore();
      };
      const onSignal = (signal: NodeJS.Signals): void => {
        undo();
        process.kill(process.pid, signal);
      };
      process.on('exit', restore);
      for (const signal of endings) process.on(signal, onSignal);
      return undo;
    },
    size: () => (stdout.isTTY ? { columns: stdout.columns, rows: stdout.rows } : undefined),
    onResize: (listener) => {
      stdout.on('resize', listener);
      return () => stdout.off('resize', listener);
    },
    output: byteOutput(stdout),
    errors: byteOutput(stderr),
  };
};
