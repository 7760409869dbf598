/**
 * A second opinion on the runtime: a few CRI calls with a protobuf reader of our own, sharing nothing with src/cri. The test bed cleans
 * up with it, and device tests compare what the agent told with what it lists.
 */
import { Client, credentials } from '@grpc/grpc-js';

type Wire = ReadonlyMap<number, readonly (Buffer | bigint)[]>;

function varint(buffer: Buffer, at: number): [value: bigint, next: number] {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n, at++) {
    const byte = buffer[at];
    if (byte === undefined) throw new Error('protobuf message ends in a number');
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return [value, at + 1];
  }
}

/** The fields of one message by number; lengths stay bytes, numbers become bigint. */
function decode(buffer: Buffer): Wire {
  const fields = new Map<number, (Buffer | bigint)[]>();
  for (let at = 0; at < buffer.length; ) {
    const [tag, start] = varint(buffer, at);
    const number = Number(tag >> 3n);
    let value: Buffer | bigint;
    switch (Number(tag & 7n)) {
      case 0:
        [value, at] = varint(buffer, start);
        break;
      case 1:
        [value, at] = [buffer.readBigUInt64LE(start), start + 8];
        break;
      case 2: {
        const [length, from] = varint(buffer, start);
        at = from + Number(length);
        value = buffer.subarray(from, at);
        break;
      }
      case 5:
        [value, at] = [BigInt(buffer.readUInt32LE(start)), start + 4];
        break;
      default:
        throw new Error(`protobuf wire type ${tag & 7n} is not expected`);
    }
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}

const bytes = (m: Wire, n: number): Buffer => {
  const value = m.get(n)?.[0];
  return typeof value === 'object' ? value : Buffer.alloc(0);
};
const text = (m: Wire, n: number): string => bytes(m, n).toString('utf8');
const number = (m: Wire, n: number): bigint => {
  const value = m.get(n)?.[0];
  return typeof value === 'bigint' ? value : 0n;
};
const message = (m: Wire, n: number): Wire => decode(bytes(m, n));
const messages = (m: Wire, n: number): Wire[] => (m.get(n) ?? []).map((v) => decode(typeof v === 'object' ? v : Buffer.alloc(0)));
const map = (m: Wire, n: number): Record<string, string> =>
  Object.fromEntries(messages(m, n).map((entry) => [text(entry, 1), text(entry, 2)]));

const lengthOf = (n: number): Buffer => {
  const out: number[] = [];
  for (; n > 0x7f; n >>>= 7) out.push((n & 0x7f) | 0x80);
  return Buffer.from([...out, n]);
};
const stringField = (n: number, value: string): Buffer => {
  const body = Buffer.from(value, 'utf8');
  return Buffer.concat([Buffer.from([(n << 3) | 2]), lengthOf(body.length), body]);
};

export interface RawSandbox {
  readonly id: string;
  readonly name: string;
  readonly uid: string;
  readonly namespace: string;
  readonly attempt: number;
  readonly ready: boolean;
  /** Nanoseconds since 1970, all digits. */
  readonly createdAt: bigint;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface RawContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly name: string;
  readonly attempt: number;
  readonly image: string;
  readonly state: 'created' | 'running' | 'exited' | 'unknown';
  readonly createdAt: bigint;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface RawContainerStatus extends RawContainer {
  readonly startedAt: bigint;
  readonly finishedAt: bigint;
  readonly exitCode: number;
  readonly reason: string;
}

const states = ['created', 'running', 'exited', 'unknown'] as const;

export class RawCri {
  readonly #client: Client;
  constructor(socket: string) {
    this.#client = new Client(`unix://${socket}`, credentials.createInsecure(), { 'grpc.service_config_disable_resolution': 1 });
  }

  #call(method: string, request: Buffer, timeoutMs = 30_000): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const same = (b: Buffer) => b;
      this.#client.makeUnaryRequest(
        `/runtime.v1.RuntimeService/${method}`,
        same,
        same,
        request,
        { deadline: Date.now() + timeoutMs },
        (error, reply) => (error === null ? resolve(decode(reply ?? Buffer.alloc(0))) : reject(error)),
      );
    });
  }

  /** Name and version of the runtime; rejects quickly while it is not there. */
  async version(): Promise<{ name: string; version: string }> {
    const reply = await this.#call('Version', Buffer.alloc(0), 2_000);
    return { name: text(reply, 2), version: text(reply, 3) };
  }

  /** True when the runtime and its network say they are ready. */
  async ready(): Promise<boolean> {
    const conditions = messages(message(await this.#call('Status', Buffer.alloc(0), 5_000), 1), 1);
    return conditions.length >= 2 && conditions.every((c) => number(c, 2) === 1n);
  }

  /** Runs a command in a container and says all it wrote. `ctr tasks exec` may end before it has read that. */
  async exec(id: string, ...command: string[]): Promise<{ stdout: string; stderr: string; exitCode: number }> {
    const reply = await this.#call('ExecSync', Buffer.concat([stringField(1, id), ...command.map((word) => stringField(2, word))]));
    return { stdout: text(reply, 1), stderr: text(reply, 2), exitCode: Number(number(reply, 3)) };
  }

  async sandboxes(): Promise<RawSandbox[]> {
    const reply = await this.#call('ListPodSandbox', Buffer.alloc(0));
    return messages(reply, 1).map((s) => {
      const metadata = message(s, 2);
      return {
        id: text(s, 1),
        name: text(metadata, 1),
        uid: text(metadata, 2),
        namespace: text(metadata, 3),
        attempt: Number(number(metadata, 4)),
        ready: number(s, 3) === 0n,
        createdAt: number(s, 4),
        labels: map(s, 5),
        annotations: map(s, 6),
      };
    });
  }

  async containers(): Promise<RawContainer[]> {
    const reply = await this.#call('ListContainers', Buffer.alloc(0));
    return messages(reply, 1).map((c) => {
      const metadata = message(c, 3);
      return {
        id: text(c, 1),
        sandboxId: text(c, 2),
        name: text(metadata, 1),
        attempt: Number(number(metadata, 2)),
        image: text(message(c, 4), 1),
        state: states[Number(number(c, 6))] ?? 'unknown',
        createdAt: number(c, 7),
        labels: map(c, 8),
        annotations: map(c, 9),
      };
    });
  }

  /** One container with its times; sandboxId is not in this answer and stays empty. */
  async containerStatus(id: string): Promise<RawContainerStatus> {
    const s = message(await this.#call('ContainerStatus', stringField(1, id)), 1);
    const metadata = message(s, 2);
    return {
      id: text(s, 1),
      sandboxId: '',
      name: text(metadata, 1),
      attempt: Number(number(metadata, 2)),
      state: states[Number(number(s, 3))] ?? 'unknown',
      createdAt: number(s, 4),
      startedAt: number(s, 5),
      finishedAt: number(s, 6),
      exitCode: Number(BigInt.asIntN(32, number(s, 7))),
      image: text(message(s, 8), 1),
      reason: text(s, 10),
      labels: map(s, 12),
      annotations: map(s, 13),
    };
  }

  /** The addresses of a sandbox, the primary one first; none for one that shares the node's network or has ended. */
  async sandboxIps(id: string): Promise<string[]> {
    const network = message(message(await this.#call('PodSandboxStatus', stringField(1, id)), 1), 5);
    return [text(network, 1), ...messages(network, 2).map((ip) => text(ip, 1))].filter((ip) => ip !== '');
  }

  /** The runtime goes on in a new file of the same name. */
  async reopenLog(id: string): Promise<void> {
    await this.#call('ReopenContainerLog', stringField(1, id));
  }

  async stopSandbox(id: string): Promise<void> {
    await this.#call('StopPodSandbox', stringField(1, id));
  }

  async removeSandbox(id: string): Promise<void> {
    await this.#call('RemovePodSandbox', stringField(1, id));
  }

  close(): void {
    this.#client.close();
  }
}
