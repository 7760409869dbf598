/**
 * The socket file: one agent per node. Binding it decides who is the agent of this run folder; a live answer on it ends the second one, a
 * file that nobody listens on is replaced. Members of the group `podsched` may talk to it, others may not.
 */
import { randomBytes } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { chmod, chown, link, readFile, rename, rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { codeOf, isMissing } from '../world/errno.ts';

const connectMs = 2000;
const mode = 0o660;
const group = 'podsched';

/** Another agent answers on the socket. */
export class AlreadyRunning extends Error {
  constructor(readonly socketPath: string) {
    super(`another podsched agent answers on ${socketPath}`);
  }
}

export const isAlreadyRunning = (e: unknown): e is AlreadyRunning => e instanceof AlreadyRunning;

/** Whether somebody listens: a full queue or a silent peer is somebody too. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const done = (alive: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(alive);
    };
    const timer = setTimeout(() => done(true), connectMs);
    socket.once('connect', () => done(true));
    socket.once('error', (e) => done(!['ECONNREFUSED', 'ENOENT', 'ENOTSOCK', 'ENOTDIR'].includes(codeOf(e))));
  });
}

/**
 * Listens on `path` and resolves to the way back, which removes the file if it is still ours. Rejects with AlreadyRunning.
 * The socket is made under another name and linked into place: a link is refused when a file is there, so of two agents that start at
 * once only one gets the name. A stale file is moved away before it is judged a last time: the file of an agent that came in between is
 * put back.
 */
export async function bindSocket(server: Server, path: string): Promise<() => Promise<void>> {
  if (await answers(path)) throw new AlreadyRunning(path);
  // no longer than `podsched.sock`: a socket path has room for 107 bytes
  const tag = randomBytes(5).toString('hex');
  const own = join(dirname(path), `.s${tag}`);
  const away = join(dirname(path), `.o${tag}`);
  await listen(server, own);
  // by this name: the other one may be away for a moment while a second agent looks at it
  const inode = inodeOf(own);
  try {
    await chmod(own, mode);
    await giveToGroup(own);
    while (!(await linked(own, path))) {
      if (isFolder(path)) throw new Error(`${path} is a folder; the socket cannot be made there`);
      try {
        await rename(path, away);
      } catch (e) {
        if (isMissing(e)) continue; // it went by itself: the name is free
        throw e;
      }
      if (await answers(away)) {
        await linked(away, path);
        throw new AlreadyRunning(path);
      }
      await rm(away, { force: true });
    }
  } catch (e) {
    await new Promise<void>((resolve) => server.close(() => resolve()));
    throw e;
  } finally {
    await rm(own, { force: true });
    await rm(away, { force: true });
  }
  return async () => {
    if (inode !== undefined && inodeOf(path) === inode) await rm(path, { force: true });
  };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // the socket is bound before listen() returns; so it is never open to others, not even until chmod
    const before = process.umask(0o177);
    try {
      server.listen(path, () => {
        server.off('error', reject);
        resolve();
      });
    } finally {
      process.umask(before);
    }
  });
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (e) {
    if (codeOf(e) === 'EEXIST') return false;
    throw e;
  }
}

const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

function inodeOf(path: string): string | undefined {
  try {
    const { dev, ino } = lstatSync(path);
    return `${dev}:${ino}`;
  } catch {
    return undefined; // gone: nothing to remove
  }
}

/** Where the group does not exist, or the agent is not root, the socket stays the agent's own. */
async function giveToGroup(path: string): Promise<void> {
  const groups = await readFile('/etc/group', 'utf8').catch(() => '');
  const id = new RegExp(`^${group}:[^:]*:(\\d+):`, 'm').exec(groups)?.[1];
  if (id === undefined) return;
  await chown(path, process.getuid?.() ?? 0, Number(id)).catch((e) => {
    if (codeOf(e) !== 'EPERM') throw e;
  });
}
