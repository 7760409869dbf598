/**
 * `forget NODE`: clears what a node that will not come back has left on the broker, or it would stand there as lost for ever. What is desired of it
 * stays: a board may be replaced under the same name.
 */

import { wrongLabel } from '../api/names.ts';
import { homeAssistantTopic, nodeTopics } from '../api/topics.ts';
import { parseOnline } from '../broker/online.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import type { RemoteBroker } from './remoteBroker.ts';

export interface ForgetOptions {
  /** Also when it may be alive. */
  readonly force?: true;
  readonly haPrefix?: string;
}

const heartbeats = 2;
const usualHeartbeatSeconds = 60;
/** A node that is there corrects a will that came late. */
const correctMs = 3000;
/** Brokers may show a part of it only. */
const passes = 50;

/** Rejects with `notFound` when nothing of it is there, with `failed` when it is alive, or may not be cleared by this user. */
export async function forget(name: string, o: ForgetOptions, remote: RemoteBroker, print: Printer): Promise<number> {
  const wrong = wrongLabel(name);
  if (wrong !== undefined) throw new CommandError(exitCodes.usage, `expected the name of a node: ${wrong}; got ${JSON.stringify(name)}`);
  const topics = nodeTopics(remote.prefix, name);
  const device = homeAssistantTopic(o.haPrefix ?? 'homeassistant', name);
  if (o.force !== true) await listenForLife(name, topics.online, remote, print);

  const cleared = new Set<string>();
  for (let pass = 0; pass < passes; pass++) {
    const found = await remote.retained([topics.subtree]);
    if (found.size === 0) {
      if (cleared.size === 0) throw new CommandError(exitCodes.notFound, `nothing of a node ${JSON.stringify(name)} is on this broker`);
      await clearDevice(device, remote, print);
      print.out(`node/${name} forgotten: ${cleared.size === 1 ? '1 topic' : `${cleared.size} topics`} cleared\n`);
      return exitCodes.done;
    }
    // 3.1.1 acknowledges what the ACL forbids
    const stays = [...found.keys()].find((topic) => cleared.has(topic));
    if (stays !== undefined)
      throw new CommandError(
        exitCodes.failed,
        `${stays} is still there: this user may not clear it, or the node is alive and tells it again`,
      );
    for (const topic of found.keys()) {
      await remote.publish(topic, '', { retain: true });
      cleared.add(topic);
    }
  }
  throw new CommandError(exitCodes.failed, `after ${cleared.size} topics there are still more: is somebody telling them anew?`);
}

/** Unseen: who may clear it may well not read it. */
async function clearDevice(topic: string, remote: RemoteBroker, print: Printer): Promise<void> {
  try {
    await remote.publish(topic, '', { retain: true });
  } catch (e) {
    if (!(e instanceof CommandError) || e.code !== exitCodes.failed) throw e;
    print.err(`${e.message}: if Home Assistant knows this node, it will go on showing it\n`);
  }
}

async function listenForLife(name: string, online: string, remote: RemoteBroker, print: Printer): Promise<void> {
  const alive = new AbortController();
  let last: ReturnType<typeof parseOnline>;
  const stop = await remote.listenWhole(
    [online],
    ({ payload, retain }) => {
      const heard = parseOnline(payload);
      // a will is the last word of somebody else's: only the node says online
      if (!retain && heard?.state === 'online') alive.abort();
      last = heard ?? last;
    },
    () => last !== undefined,
  );
  try {
    // without one, or with its farewell, its heartbeats have ended already
    const waitMs = last?.state === 'online' ? heartbeats * 1000 * (last.heartbeatSeconds ?? usualHeartbeatSeconds) : correctMs;
    if (waitMs > correctMs) print.err(`listening for ${Math.ceil(waitMs / 1000)} s whether node "${name}" is alive (--force does not)\n`);
    await remote.wait(waitMs, alive.signal);
    if (alive.signal.aborted)
      throw new CommandError(exitCodes.failed, `node "${name}" is alive: it has been heard. End its agent first, or use --force`);
  } finally {
    await stop();
  }
}
