/** An agent on a socket of its own, and commands that ask it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AgentClient, agentClient } from '../../src/cli/client.ts';
import { CommandError } from '../../src/cli/exitCodes.ts';
import type { Printer } from '../../src/cli/get.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { agentView } from '../operations/view.ts';

export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

type Command = (client: AgentClient, print: Printer) => Promise<number>;

/** `dir`: of the socket, and for files. */
export async function withAgent(
  view: Partial<AgentView>,
  work: (run: (command: Command) => Promise<Said>, dir: string) => Promise<void>,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-acts-'));
  const socketPath = join(dir, 'podsched.sock');
  const whole = agentView(view);
  const server = await startServer({ socketPath, agent: () => whole, log: silentLog });
  const run = async (command: Command): Promise<Said> => {
    let [out, err] = ['', ''];
    const print: Printer = { out: (t) => (out += t), err: (t) => (err += t), nowMs: () => 0, sleep: async () => {} };
    try {
      const code = await command(agentClient(socketPath), print);
      return { code, out, err };
    } catch (e) {
      // as program.ts says it
      if (e instanceof CommandError) return { code: e.code, out, err: `${err}podsched: ${e.message}\n` };
      throw e;
    }
  };
  try {
    await work(run, dir);
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}
