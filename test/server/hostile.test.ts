/** What whoever may open the socket can do with it: neither fill the log nor hold anything. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startServer } from '../../src/server/server.ts';
import type { Log } from '../../src/world/log.ts';
import { agentView } from '../operations/view.ts';

test('an asker that goes away within its request is no line in the log; too much is answered and not read', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-hostile-'));
  const socketPath = join(dir, 'podsched.sock');
  const lines: string[] = [];
  const say = (nouns: object, sentence: string): void => void lines.push(`${sentence} ${JSON.stringify(nouns)}`);
  const log: Log = { debug() {}, info: say, warn: say, error: say, child: () => log };
  const server = await startServer({ socketPath, agent: () => agentView(), log });
  /** Goes away after so many ms; without them when it was answered. */
  const send = (first: string, waitMs?: number): Promise<string> =>
    new Promise((resolve) => {
      let got = '';
      const socket = connect(socketPath, () => socket.write(first));
      socket.on('data', (bytes) => {
        got += bytes;
        if (waitMs === undefined) socket.destroy();
      });
      socket.on('error', () => {}); // the other side closed it
      const timer = setTimeout(() => socket.destroy(), waitMs ?? 30_000);
      socket.on('close', () => {
        clearTimeout(timer);
        resolve(got);
      });
    });
  const head = (bytes: number): string => `POST /debug/default/web HTTP/1.1\r\nhost: x\r\ncontent-length: ${bytes}\r\n\r\n`;
  try {
    await Promise.all(Array.from({ length: 20 }, () => send(`${head(100)}{"na`, 50)));
    await Promise.all(
      Array.from({ length: 5 }, () => send('POST /exec/default/web/app HTTP/1.1\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 50)),
    );
    assert.match(await send(`${head(10 << 20)}"${'x'.repeat(10 << 20)}`), /^HTTP\/1.1 413 /);
    assert.deepEqual(lines, []);
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
