/** A stream of bytes taken apart into MQTT packets, as far as a test asks: which packet, its id, its topic. Knows nothing of a client library. */

/** By the number in the first four bits of a packet. */
const names = [
  'RESERVED',
  'CONNECT',
  'CONNACK',
  'PUBLISH',
  'PUBACK',
  'PUBREC',
  'PUBREL',
  'PUBCOMP',
  'SUBSCRIBE',
  'SUBACK',
  'UNSUBSCRIBE',
  'UNSUBACK',
  'PINGREQ',
  'PINGRESP',
  'DISCONNECT',
  'AUTH',
] as const;

export interface MqttPacket {
  readonly name: (typeof names)[number];
  /** The whole packet as it came. */
  readonly bytes: Buffer;
  /** Of PUBLISH. */
  readonly topic?: string;
  /** Of PUBLISH at QoS 1 and of PUBACK. */
  readonly packetId?: number;
}

export class MqttFrames {
  #rest: Buffer = Buffer.alloc(0);

  /** The packets that are whole with this part. */
  take(part: Buffer): MqttPacket[] {
    this.#rest = this.#rest.length === 0 ? part : Buffer.concat([this.#rest, part]);
    const whole: MqttPacket[] = [];
    for (;;) {
      const length = packetLength(this.#rest);
      if (length === undefined || this.#rest.length < length) return whole;
      whole.push(readPacket(this.#rest.subarray(0, length)));
      this.#rest = this.#rest.subarray(length);
    }
  }
}

/** Bytes of the packet that begins here; undefined: its length is not known yet. */
function packetLength(bytes: Buffer): number | undefined {
  let length = 0;
  for (let i = 1; i <= 4 && i < bytes.length; i++) {
    const digit = bytes[i] ?? 0;
    length += (digit & 0x7f) * 128 ** (i - 1);
    if ((digit & 0x80) === 0) return 1 + i + length;
  }
  return undefined;
}

function readPacket(bytes: Buffer): MqttPacket {
  const name = names[(bytes[0] ?? 0) >> 4] ?? 'RESERVED';
  let body = 1;
  while (((bytes[body] ?? 0) & 0x80) !== 0) body++;
  body++;
  if (name === 'PUBACK') return { name, bytes, packetId: bytes.readUInt16BE(body) };
  if (name !== 'PUBLISH') return { name, bytes };
  const end = body + 2 + bytes.readUInt16BE(body);
  const topic = bytes.toString('utf8', body + 2, end);
  const qos = ((bytes[0] ?? 0) >> 1) & 3;
  return qos === 0 ? { name, bytes, topic } : { name, bytes, topic, packetId: bytes.readUInt16BE(end) };
}
