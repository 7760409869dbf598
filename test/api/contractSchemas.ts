/** The schemas of all payloads by their names in the contract, and AsyncAPI's view of all topics: what docs/schemas and docs/asyncapi.yaml are. */
import type { TSchema } from '@sinclair/typebox';
import {
  CommandSchema,
  DesiredIndexSchema,
  LogLinesSchema,
  NodeConfigSchema,
  NodeMetricsSchema,
  NodeSummarySchema,
  ReplySchema,
  RolloutSchema,
} from '../../src/api/messages.ts';
import { FileStatusSchema, NodeOnlineSchema, SyncStatusSchema } from '../../src/api/payloads.ts';
import {
  EnvelopeSchema,
  HomeAssistantSchema,
  ManifestSchema,
  MarkerSchema,
  ToldEventSchema,
  ToldNodeSchema,
  ToldPodSchema,
} from '../../src/api/toldSchemas.ts';
import { type PayloadName, type TopicRow, topicParameters, topicTable } from '../../src/api/topicTable.ts';

export const schemas: Readonly<Record<PayloadName, TSchema>> = {
  NodeOnline: NodeOnlineSchema,
  Marker: MarkerSchema,
  Node: ToldNodeSchema,
  NodeSummary: NodeSummarySchema,
  Pod: ToldPodSchema,
  SyncStatus: SyncStatusSchema,
  FileStatus: FileStatusSchema,
  Event: ToldEventSchema,
  NodeMetrics: NodeMetricsSchema,
  LogLines: LogLinesSchema,
  Manifest: ManifestSchema,
  Envelope: EnvelopeSchema,
  DesiredIndex: DesiredIndexSchema,
  NodeConfig: NodeConfigSchema,
  Rollout: RolloutSchema,
  Command: CommandSchema,
  Reply: ReplySchema,
  HomeAssistantDevice: HomeAssistantSchema,
};

export const payloadNames = Object.keys(schemas) as PayloadName[];

/** Plain JSON: TypeBox's own marks are symbols, which JSON leaves out. */
const plain = (schema: TSchema): Record<string, unknown> => JSON.parse(JSON.stringify(schema));

/** The file of a schema: JSON Schema draft 7, which every validator reads. */
export const schemaFile = (name: PayloadName): string =>
  `${JSON.stringify(
    { $schema: 'http://json-schema.org/draft-07/schema#', $id: `urn:podsched:v1:${name}`, title: name, ...plain(schemas[name]) },
    null,
    1,
  )}\n`;

const ref = (path: string) => ({ $ref: `#/${path}` });
const parametersOf = (address: string): string[] => [...address.matchAll(/\{(\w+)\}/g)].map((m) => m[1] ?? '');

const channel = ({ address, what, payloads }: TopicRow) => ({
  address,
  description: what.replaceAll('`', ''),
  messages: Object.fromEntries(payloads.map((name) => [name, ref(`components/messages/${name}`)])),
  parameters: Object.fromEntries(parametersOf(address).map((name) => [name, ref(`components/parameters/${name}`)])),
});

const operation = (row: TopicRow) => ({
  action: row.by === 'operator' ? 'receive' : 'send',
  channel: ref(`channels/${row.id}`),
  summary: row.what.replaceAll('`', ''),
  ...(row.empty !== undefined && { description: `An empty retained payload: ${row.empty}.` }),
  messages: row.payloads.map((name) => ref(`channels/${row.id}/messages/${name}`)),
  bindings: {
    mqtt: {
      qos: row.qos,
      retain: row.retained,
      ...(row.expirySeconds !== undefined && { messageExpiryInterval: row.expirySeconds }),
      bindingVersion: '0.2.0',
    },
  },
  ...(row.id === 'command' && {
    reply: {
      address: {
        description: 'the response topic of MQTT 5, else replyTo of the Command',
        location: '$message.payload#/replyTo',
      },
      channel: ref('channels/reply'),
      messages: [ref('channels/reply/messages/Reply')],
    },
  }),
});

const capital = (id: string): string => id.charAt(0).toUpperCase() + id.slice(1);

/** AsyncAPI 3.0, as the node sees it: it sends what it tells, and receives what it is to have and what it is asked. */
export const asyncapi = (): Record<string, unknown> => ({
  asyncapi: '3.0.0',
  id: 'urn:podsched:v1',
  info: {
    title: 'podsched over MQTT',
    version: '1.0.0',
    description:
      'Version 1 of the contract, seen from a node. Fields are only ever added within v1; readers ignore what they do not know. ' +
      'The prefix podsched/v1 and homeassistant are configured; message expiry needs MQTT 5.',
    license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
  },
  defaultContentType: 'application/json',
  servers: {
    broker: {
      host: 'broker.example:8883',
      protocol: 'secure-mqtt',
      protocolVersion: '5',
      description: 'any broker, MQTT 5 or 3.1.1',
      bindings: {
        mqtt: {
          clientId: 'podsched-<node>-<machine>',
          cleanSession: false,
          lastWill: { topic: 'podsched/v1/nodes/<node>/online', qos: 1, message: 'NodeOnline with state lost', retain: true },
          keepAlive: 30,
          sessionExpiryInterval: 3600,
          bindingVersion: '0.2.0',
        },
      },
    },
  },
  channels: Object.fromEntries(topicTable.map((row) => [row.id, channel(row)])),
  operations: Object.fromEntries(topicTable.map((row) => [`${row.by === 'operator' ? 'take' : 'tell'}${capital(row.id)}`, operation(row)])),
  components: {
    parameters: Object.fromEntries(Object.entries(topicParameters).map(([name, description]) => [name, { description }])),
    messages: Object.fromEntries(
      payloadNames.map((name) => [
        name,
        {
          name,
          title: name,
          contentType: 'application/json',
          payload: ref(`components/schemas/${name}`),
          ...(name === 'Reply' && { correlationId: { location: '$message.payload#/id', description: 'or correlation data of MQTT 5' } }),
        },
      ]),
    ),
    schemas: Object.fromEntries(payloadNames.map((name) => [name, plain(schemas[name])])),
  },
});

export const tableBegin = '<!-- topics: written by test/api/contractDocs.test.ts -->';
export const tableEnd = '<!-- /topics -->';

/** The table of all topics for docs/mqtt.md, without its marks. */
export function topicsMarkdown(): string {
  const rows = topicTable.map((r) => {
    const payloads = r.payloads.map((name) => `[${name}](schemas/${name}.json)`).join(' or ');
    const empty = r.empty === undefined ? '' : ` Empty: ${r.empty}.`;
    const what = `${payloads}: ${r.what}.${empty}`;
    return `| \`${r.address.replace(/\{(\w+)\}/g, '<$1>')}\` | ${r.by} | ${what} | ${r.qos} | ${r.retained ? 'yes' : 'no'} | ${r.expiry} |`;
  });
  return ['| topic | by | payload | QoS | retained | expiry |', '| --- | --- | --- | --- | --- | --- |', ...rows].join('\n');
}
