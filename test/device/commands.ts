/** Commands over MQTT as any client would send them, with MQTT 5's response topic or 3.1.1's `replyTo`. Knows nothing of src/ but shapes. */
import { randomUUID } from 'node:crypto';
import { connectAsync, type MqttClient } from 'mqtt';
import type { Reply } from '../../src/api/messages.ts';

export interface Answer {
  readonly replies: readonly Reply[];
  readonly last: Reply;
  /** All pieces put together. */
  readonly text: string;
}

export interface Commander {
  readonly client: MqttClient;
  readonly version: 4 | 5;
  /** Sends it and waits for the last reply. */
  ask(verb: string, more?: Readonly<Record<string, unknown>>, o?: { readonly id?: string; readonly timeoutMs?: number }): Promise<Answer>;
  end(): Promise<void>;
}

const finals = new Set(['ok', 'error', 'denied', 'expired', 'tooLarge']);
const pieceOf = (r: Reply): Buffer => Buffer.from(r.data ?? '', r.encoding === 'base64' ? 'base64' : 'utf8');

export async function commander(url: string, node: string, version: 4 | 5, requester = `tester-${version}`): Promise<Commander> {
  const client = await connectAsync(url, { protocolVersion: version, reconnectPeriod: 200 }, false);
  client.on('error', () => {}); // it connects again
  const topic = `podsched/v1/reply/${requester}/${node}`;
  const heard = new Map<string, { readonly replies: Reply[]; readonly done: (a: Answer) => void }>();
  client.on('message', (_, payload, packet) => {
    const reply = JSON.parse(payload.toString()) as Reply;
    const id = version === 5 ? String(packet.properties?.correlationData) : reply.id;
    const waiting = heard.get(id);
    if (waiting === undefined) return;
    waiting.replies.push(reply);
    if (!finals.has(reply.status) || reply.chunk?.last === false) return;
    heard.delete(id);
    const text = Buffer.concat(waiting.replies.map(pieceOf)).toString();
    waiting.done({ replies: waiting.replies, last: reply, text });
  });
  await client.subscribeAsync(topic, { qos: 1 });
  return {
    client,
    version,
    ask: async (verb, more = {}, { id = randomUUID(), timeoutMs = 45_000 } = {}) => {
      const command = { apiVersion: 'podsched.dev/v1', kind: 'Command', id, ...more, ...(version === 4 && { replyTo: topic }) };
      const properties = { responseTopic: topic, correlationData: Buffer.from(id) };
      return new Promise<Answer>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no last reply to ${verb}: ${JSON.stringify(heard.get(id)?.replies)}`)), timeoutMs);
        heard.set(id, {
          replies: [],
          done: (answer) => {
            clearTimeout(timer);
            resolve(answer);
          },
        });
        client
          .publishAsync(`podsched/v1/cmd/${node}/${verb}`, JSON.stringify(command), { qos: 1, ...(version === 5 && { properties }) })
          .catch(reject);
      });
    },
    end: () => client.endAsync(true),
  };
}
