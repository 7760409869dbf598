/** A session on a fake broker in virtual time, with the knobs a test turns. */
import type { NodeOnline } from '../../src/api/payloads.ts';
import type { Inbound, Inbox } from '../../src/broker/inbox.ts';
import type { MessageReport } from '../../src/broker/sender.ts';
import { BrokerSession, type BrokerSessionDeps } from '../../src/broker/session.ts';
import type { SessionIdentity } from '../../src/broker/words.ts';
import type { Broker } from '../../src/world/broker.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

export const root = 'podsched/v1/nodes/pi-1';
export const onlineTopic = `${root}/online`;
export const webTopic = `${root}/pods/default/web`;

export class FakeIdentity implements SessionIdentity {
  readonly nodeName = 'pi-1';
  readonly bootId = 'boot-id';
  known: number | undefined = 3;
  fileMachine: string;
  former: string[] = [];
  constructor(readonly machine = 'aaaaaaaaaaaa') {
    this.fileMachine = machine;
  }
  boot = () => this.known ?? 1;
  bootKnown = () => this.known !== undefined;
  async adoptBoot(seen: number | undefined) {
    this.known = (seen ?? 0) + 1;
  }
  rightful = () => this.fileMachine === this.machine;
  async claim() {
    this.former.push(this.fileMachine);
    this.fileMachine = this.machine;
  }
  async giveBack(machine: string) {
    this.fileMachine = machine;
    this.former = this.former.filter((m) => m !== machine);
  }
  formerMachines = () => this.former;
}

/** What an inbox was told, in order, as lines; a message is its topic, with `!` when retained and `?` when it may have been queued. */
export class FakeInbox implements Inbox {
  readonly lines: string[] = [];
  readonly messages: Inbound[] = [];
  message(m: Inbound): void {
    this.messages.push(m);
    this.lines.push(`${m.topic}${m.retain ? '!' : ''}${m.queued ? '?' : ''}`);
  }
  snapshot = (filters: readonly string[]) => void this.lines.push(`snapshot ${filters.join(' ')}`);
  connected = (o: { readonly sessionPresent: boolean; readonly session: number }) =>
    void this.lines.push(`connected${o.sessionPresent ? ' again' : ''}`);
  disconnected = () => void this.lines.push('disconnected');
  /** The lines so far, taken out. */
  take(): string[] {
    return this.lines.splice(0);
  }
  texts(): string[] {
    return this.messages.map((m) => new TextDecoder().decode(m.payload));
  }
}

export interface Rig {
  readonly clock: FakeClock;
  readonly broker: FakeBroker;
  readonly identity: FakeIdentity;
  readonly session: BrokerSession;
  readonly reports: MessageReport[];
  readonly running: Promise<void>;
  /** States said on the online topic, in order, wills included. */
  online(): NodeOnline | undefined;
  tellPod(name: string, payload?: string): void;
  /** How often a topic was published by this node. */
  times(topic: string): number;
}

export interface RigOptions extends Partial<BrokerSessionDeps> {
  readonly fake?: FakeBroker;
  readonly fakeClock?: FakeClock;
  readonly fakeIdentity?: FakeIdentity;
  readonly door?: Broker;
}

export function rig(o: RigOptions = {}): Rig {
  const clock = o.fakeClock ?? new FakeClock();
  const broker = o.fake ?? new FakeBroker(clock);
  const identity = o.fakeIdentity ?? new FakeIdentity();
  const reports: MessageReport[] = [];
  let seq = 0;
  const session = new BrokerSession({
    clock,
    log: silentLog,
    broker: o.door ?? broker,
    servers: ['mqtt://a'],
    clientId: `podsched-${identity.nodeName}-${identity.machine}`,
    credentials: async () => ({}),
    keepaliveSeconds: 30,
    insecure: true,
    random: () => 0.5,
    splayRangeMs: 0,
    identity,
    prefix: 'podsched/v1',
    heartbeatSeconds: () => 60,
    agentVersion: '1',
    clockSynced: () => true,
    seq: () => ++seq,
    report: (r) => reports.push(r),
    ...o,
  });
  const running = session.run(new AbortController().signal);
  return {
    clock,
    broker,
    identity,
    session,
    reports,
    running,
    online: () => {
      const text = broker.retainedNow()[onlineTopic];
      return text === undefined ? undefined : (JSON.parse(text) as NodeOnline);
    },
    tellPod: (name, payload = `{"kind":"Pod","name":"${name}"}`) =>
      session.tell(`${root}/pods/default/${name}`, payload, { qos: 1, expirySeconds: 7 * 86_400 }),
    times: (topic) => broker.publishes.filter((p) => p.topic === topic).length,
  };
}
