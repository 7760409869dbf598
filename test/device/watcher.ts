/** A reader of the MQTT contract: keeps what is retained, notes what passes by, and waits for what should come. Knows nothing of src/. */
import { connectAsync, type MqttClient } from 'mqtt';
import { sleep } from './process.ts';

export interface Heard {
  readonly topic: string;
  /** The payload as it came; empty means "gone". */
  readonly text: string;
  /** True for what the broker had kept from before this subscription. */
  readonly retained: boolean;
  /** performance.now() of its arrival. */
  readonly at: number;
}

export interface Watcher {
  readonly client: MqttClient;
  /** The last payload of each topic that has one, parsed. Event topics are in `heard` only. */
  readonly values: ReadonlyMap<string, unknown>;
  readonly heard: readonly Heard[];
  /** Called with each message, after `values` has it. */
  onMessage: ((message: Heard) => void) | undefined;
  /** The value of a topic once `check` holds for it (undefined: the topic is empty or was cleared). */
  until(topic: string, check: (value: unknown) => boolean, timeoutMs?: number): Promise<unknown>;
  /** Resolves when `check` holds over everything; it is asked again at each message. */
  untilAll(what: string | (() => string), check: (values: ReadonlyMap<string, unknown>) => boolean, timeoutMs?: number): Promise<void>;
  end(): Promise<void>;
}

/** Long enough for a machine that has much else to do: it is reached only where something never comes. */
const patienceMs = 45_000;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Connects (trying again until `timeoutMs`) and subscribes to `filter`. */
export async function watchTopics(url: string, filter = 'podsched/v1/#', timeoutMs = 45_000): Promise<Watcher> {
  const end = performance.now() + timeoutMs;
  let client: MqttClient;
  for (;;) {
    try {
      // 3.1.1 and without going back to an older one: the embedded broker knows no other
      client = await connectAsync(url, { protocolVersion: 4, reconnectPeriod: 200, connectTimeout: 2_000, manualConnect: false }, false);
      break;
    } catch (e) {
      if (performance.now() > end) throw e;
      await sleep(25);
    }
  }
  const values = new Map<string, unknown>();
  const heard: Heard[] = [];
  const waiting = new Set<() => void>();
  const watcher: Watcher = {
    client,
    values,
    heard,
    onMessage: undefined,
    until: async (topic, check, ms = patienceMs) => {
      await watcher.untilAll(
        () => `${topic} (now: ${JSON.stringify(values.get(topic))?.slice(0, 600)})`,
        () => check(values.get(topic)),
        ms,
      );
      return values.get(topic);
    },
    untilAll: (what, check, ms = patienceMs) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!check(values)) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve();
        };
        const timer = setTimeout(() => {
          waiting.delete(look);
          reject(new Error(`not told within ${ms} ms: ${typeof what === 'string' ? what : what()}`));
        }, ms);
        waiting.add(look);
        look();
      }),
    end: () => client.endAsync(true),
  };
  client.on('message', (topic, payload, packet) => {
    const message: Heard = { topic, text: payload.toString('utf8'), retained: packet.retain, at: performance.now() };
    heard.push(message);
    if (message.text === '') values.delete(topic);
    else if (!topic.includes('/events/') && !topic.endsWith('/_marker')) values.set(topic, parse(message.text));
    watcher.onMessage?.(message);
    for (const look of [...waiting]) look();
  });
  client.on('error', () => {}); // a broker that goes away is what some tests want; the client comes back by itself
  await client.subscribeAsync(filter, { qos: 1 });
  return watcher;
}

/** What a broker keeps under `filter`, by topic: connects, reads until a marker of its own comes back, and leaves. */
export async function retainedNow(url: string, filter = 'podsched/v1/#'): Promise<Map<string, unknown>> {
  const client = await connectAsync(url, { protocolVersion: 4, reconnectPeriod: 0 }, false);
  const found = new Map<string, unknown>();
  let seen = 0;
  const marker = `test-marker/${process.pid}-${Math.random().toString(36).slice(2)}`;
  const gone = new Promise<never>((_, reject) => {
    client.once('close', () => reject(new Error('the broker went while it was read')));
  });
  const back = new Promise<void>((resolve) => {
    client.on('message', (topic, payload, packet) => {
      seen++;
      if (topic === marker) resolve();
      else if (packet.retain) found.set(topic, parse(payload.toString('utf8')));
    });
  });
  const asked = async () => {
    await client.subscribeAsync(filter, { qos: 1 });
    await client.subscribeAsync(marker, { qos: 1 });
    await client.publishAsync(marker, '', { qos: 1 });
    await back;
  };
  await Promise.race([asked(), gone]);
  // aedes lets the marker overtake what it kept: the snapshot has ended when nothing came for a while. In five looks, since after a long
  // pause of this process the first look comes before what waits in the socket
  for (let before = seen, quiet = 0; quiet < 5; before = seen) {
    await sleep(80);
    quiet = before === seen ? quiet + 1 : 0;
  }
  await client.endAsync();
  return found;
}
