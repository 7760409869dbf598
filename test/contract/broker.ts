/** What every broker behind the port does: run on the fake, on aedes and on mosquitto, so that a test on the fake says something. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type Broker,
  type BrokerConnection,
  BrokerError,
  type BrokerHandlers,
  type BrokerMessage,
  type ConnectOptions,
  type DropReason,
  maxInboundBytes,
} from '../../src/world/broker.ts';

export interface BrokerUnderTest {
  readonly broker: Broker;
  readonly server: string;
  /** aedes sends retained messages while newer ones pass them by: there a marker is a hint only. */
  readonly retainedComesLate?: boolean;
  /** An address where nobody listens. */
  readonly nobody: string;
  stop(): Promise<void>;
}

interface Client {
  readonly connection: BrokerConnection;
  readonly messages: BrokerMessage[];
  readonly dropped: DropReason[];
  readonly closed: Promise<BrokerError | undefined>;
}

const text = (m: BrokerMessage): string => new TextDecoder().decode(m.payload);

/** Waits for real time too: two of the three brokers live behind a socket. */
async function eventually(what: string, holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 30_000; performance.now() < end; await new Promise((resolve) => setTimeout(resolve, 10))) {
    if (holds()) return;
  }
  assert.fail(`never: ${what}`);
}

export function brokerContract(name: string, version: 4 | 5, start: () => Promise<BrokerUnderTest>): void {
  describe(`broker contract: ${name}, MQTT ${version === 5 ? '5' : '3.1.1'}`, () => {
    let under: BrokerUnderTest;
    const clients: Client[] = [];
    before(async () => {
      under = await start();
    });
    after(async () => {
      for (const c of clients) await c.connection.end('disconnect');
      await under.stop();
    });

    const options = (clientId: string, more: Partial<ConnectOptions> = {}): ConnectOptions => ({
      server: under.server,
      protocolVersion: version,
      clientId,
      cleanStart: true,
      keepaliveSeconds: 30,
      will: { topic: `wills/${clientId}`, payload: `${clientId} lost`, qos: 1, retain: true, delaySeconds: 0, expirySeconds: 600 },
      ...more,
    });
    const connect = async (clientId: string, more: Partial<ConnectOptions> = {}): Promise<Client> => {
      const messages: BrokerMessage[] = [];
      const dropped: DropReason[] = [];
      let tell: (e: BrokerError | undefined) => void = () => {};
      const closed = new Promise<BrokerError | undefined>((resolve) => {
        tell = resolve;
      });
      const handlers: BrokerHandlers = {
        onMessage: (m) => messages.push(m),
        onDropped: (reason) => dropped.push(reason),
        onClose: (e) => tell(e),
      };
      const connection = await under.broker.connect(options(clientId, more), handlers);
      const client = { connection, messages, dropped, closed };
      clients.push(client);
      return client;
    };
    const keep = { qos: 1, retain: true } as const;

    test('a retained message is there for a later subscriber, flagged retained; an empty one clears it', async () => {
      const a = await connect('keeper');
      await a.connection.publish('keep/one', 'first', { ...keep, expirySeconds: 600 });
      await a.connection.publish('keep/one', new TextEncoder().encode('second'), { ...keep, expirySeconds: 600 });
      const b = await connect('reader');
      assert.equal(b.connection.sessionPresent, false);
      assert.equal(b.connection.protocolVersion, version);
      await b.connection.subscribe(['keep/#'], 1);
      await eventually('retained arrives', () => b.messages.length > 0);
      assert.deepEqual(
        b.messages.map((m) => [m.topic, text(m), m.retain]),
        [['keep/one', 'second', true]],
      );
      await a.connection.publish('keep/one', '', keep);
      const c = await connect('late-reader');
      await c.connection.subscribe(['keep/#', 'mark'], 1);
      await c.connection.publish('mark', 'x', { qos: 1, retain: false });
      await eventually('marker', () => c.messages.length > 0);
      assert.deepEqual(
        c.messages.map((m) => m.topic),
        ['mark'],
      );
    });

    test('a message passed on live is not flagged retained, even when it is retained', async () => {
      const a = await connect('live');
      await a.connection.subscribe(['live/+'], 1);
      await a.connection.publish('live/x', 'now', keep);
      await eventually('echo', () => a.messages.length > 0);
      assert.equal(a.messages[0]?.retain, false);
      await a.connection.publish('live/x', '', keep);
    });

    test('a marker at QoS 1 comes back after the retained messages subscribed before it', async () => {
      const a = await connect('marker');
      for (let i = 0; i < 50; i++) await a.connection.publish(`many/${i}`, `${i}`, keep);
      const b = await connect('marker-reader');
      await b.connection.subscribe(['many/#'], 1);
      await b.connection.subscribe(['the-mark'], 1);
      await b.connection.publish('the-mark', '', { qos: 1, retain: false });
      await eventually('mark', () => b.messages.some((m) => m.topic === 'the-mark'));
      if (under.retainedComesLate) await eventually('the rest', () => b.messages.length === 51);
      else assert.ok(b.messages.findIndex((m) => m.topic === 'the-mark') === 50, 'the marker is last');
      for (let i = 0; i < 50; i++) await a.connection.publish(`many/${i}`, '', keep);
    });

    test('unsubscribed filters bring nothing more', async () => {
      const a = await connect('unsub');
      await a.connection.subscribe(['un/a', 'un/b'], 1);
      await a.connection.unsubscribe(['un/a']);
      await a.connection.publish('un/a', 'x', { qos: 1, retain: false });
      await a.connection.publish('un/b', 'x', { qos: 1, retain: false });
      await eventually('un/b', () => a.messages.length > 0);
      assert.deepEqual(
        a.messages.map((m) => m.topic),
        ['un/b'],
      );
    });

    test('the will is told when the socket drops, and not after DISCONNECT', async () => {
      const watcher = await connect('watcher');
      await watcher.connection.subscribe(['wills/#'], 1);
      const polite = await connect('polite');
      await polite.connection.end('disconnect');
      assert.equal(await polite.closed, undefined);
      const rude = await connect('rude');
      await rude.connection.end('drop');
      await eventually('will', () => watcher.messages.length > 0);
      assert.deepEqual(watcher.messages.map(text), ['rude lost']);
      await watcher.connection.publish('wills/rude', '', keep);
    });

    test('a second client of the same id takes over, and the first hears of its end once', async () => {
      const first = await connect('twin');
      await connect('twin');
      const error = await first.closed;
      // mosquitto 2.0.11 hangs up without a word; who says why says this
      assert.ok(error?.code === undefined || error.code === 0x8e);
      await assert.rejects(first.connection.publish('twin/x', 'x', keep), BrokerError);
      await first.connection.end('disconnect');
    });

    test('a publish that waits when the connection goes is rejected, and so is everything after', async () => {
      const a = await connect('cutter');
      // the answer may have been quicker; if not, it is this error
      const waiting = a.connection.publish('cut/x', 'x', { qos: 1, retain: false }).catch((e) => assert.ok(e instanceof BrokerError));
      await a.connection.end('drop');
      await waiting;
      await assert.rejects(a.connection.publish('cut/x', 'x', keep), BrokerError);
      await assert.rejects(a.connection.subscribe(['cut/#'], 1), BrokerError);
      await a.connection.end('drop');
    });

    test('a hundred publishes at once are all acknowledged', async () => {
      const a = await connect('many');
      await a.connection.subscribe(['hundred/#'], 1);
      await Promise.all(
        Array.from({ length: 100 }, (_, i) => a.connection.publish(`hundred/${i}`, 'x'.repeat(500), { qos: 1, retain: false })),
      );
      await eventually('all came', () => a.messages.length === 100);
    });

    test('exact topics, several in one SUBSCRIBE, bring what is retained under each, and again when asked for again', async () => {
      const a = await connect('exact');
      for (const i of [1, 2, 3]) await a.connection.publish(`exact/${i}`, `${i}`, keep);
      const b = await connect('exact-reader');
      for (let round = 1; round <= 2; round++) {
        await b.connection.subscribe(['exact/1', 'exact/3', 'exact/none'], 1);
        await eventually('both', () => b.messages.length === 2 * round);
        await b.connection.unsubscribe(['exact/1', 'exact/3', 'exact/none']);
      }
      assert.deepEqual(b.messages.map((m) => `${m.topic} ${text(m)} ${m.retain}`).toSorted(), [
        'exact/1 1 true',
        'exact/1 1 true',
        'exact/3 3 true',
        'exact/3 3 true',
      ]);
      for (const i of [1, 2, 3]) await a.connection.publish(`exact/${i}`, '', keep);
    });

    test('a filter subscribed once more on the same connection brings its retained messages once more', async () => {
      const a = await connect('once-more');
      await a.connection.publish('more/x', 'x', keep);
      for (let round = 1; round <= 2; round++) {
        await a.connection.subscribe(['more/#'], 1);
        await eventually('retained', () => a.messages.filter((m) => m.retain).length === round);
      }
      await a.connection.publish('more/x', '', keep);
    });

    test('responseTopic and correlationData arrive in MQTT 5, live and retained, and are left out in 3.1.1', async () => {
      const a = await connect('asker');
      const b = await connect('answerer');
      await b.connection.subscribe(['ask/+'], 1);
      const correlationData = Uint8Array.of(0, 1, 254, 255);
      const how = { qos: 1, retain: true, responseTopic: 'reply/here', correlationData, expirySeconds: 60 } as const;
      await a.connection.publish('ask/x', 'question', how);
      await eventually('question', () => b.messages.length > 0);
      const c = await connect('late-answerer');
      await c.connection.subscribe(['ask/+'], 1);
      await eventually('retained question', () => c.messages.length > 0);
      for (const m of [b.messages[0], c.messages[0]]) {
        assert.equal(m?.responseTopic, version === 5 ? 'reply/here' : undefined);
        assert.deepEqual(m?.correlationData && [...m.correlationData], version === 5 ? [...correlationData] : undefined);
      }
      await a.connection.publish('ask/x', '', keep);
    });

    test('a payload that is too large reaches nobody, and ends nothing; the next one comes', async () => {
      const a = await connect('large');
      const b = await connect('large-reader');
      await b.connection.subscribe(['large/+'], 1);
      // enough of them that a broker waiting for their acknowledgement would send nothing more
      for (let i = 0; i < 25; i++) await a.connection.publish(`large/${i}`, 'x'.repeat(maxInboundBytes + 1), { qos: 1, retain: false });
      await a.connection.publish('large/small', 'y', { qos: 1, retain: false });
      await eventually('small', () => b.messages.length > 0);
      assert.deepEqual(b.messages.map(text), ['y']);
      assert.deepEqual(
        b.dropped,
        Array.from({ length: 25 }, () => 'size'),
      );
    });

    test('payloads are bytes, whatever they are', async () => {
      const a = await connect('bytes');
      await a.connection.subscribe(['bytes/#'], 1);
      const odd = Uint8Array.of(0xff, 0, 0xc3, 0x28, 0x7b);
      await a.connection.publish('bytes/x', odd, { qos: 1, retain: false });
      await eventually('echo', () => a.messages.length > 0);
      assert.deepEqual([...(a.messages[0]?.payload ?? [])], [...odd]);
    });

    if (version === 5) {
      test('a kept session resumes: its subscriptions stand and what came meanwhile is delivered', async () => {
        const first = await connect('sleeper', { cleanStart: false });
        assert.equal(first.connection.sessionPresent, false);
        await first.connection.subscribe(['sleep/#'], 1);
        await first.connection.end('disconnect');
        const other = await connect('waker');
        await other.connection.publish('sleep/x', 'while you were away', { qos: 1, retain: false });
        const second = await connect('sleeper', { cleanStart: false });
        assert.equal(second.connection.sessionPresent, true);
        await eventually('queued message', () => second.messages.length > 0);
        assert.deepEqual(
          second.messages.map((m) => [text(m), m.retain]),
          [['while you were away', false]],
        );
      });
    }

    test('where nobody listens, connecting rejects with BrokerError', async () => {
      const nothing = { onMessage: () => {}, onClose: () => {} };
      await assert.rejects(under.broker.connect(options('alone', { server: under.nobody }), nothing), BrokerError);
    });

    test('an aborted attempt rejects with the reason', async () => {
      const nothing = { onMessage: () => {}, onClose: () => {} };
      const reason = new Error('enough');
      await assert.rejects(under.broker.connect(options('never'), nothing, AbortSignal.abort(reason)), reason);
    });
  });
}
