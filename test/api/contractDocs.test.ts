/** docs/schemas, docs/asyncapi.yaml and the table of topics are what the code says (write them anew with UPDATE_DOCS=1). */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { stringify } from 'yaml';
import { parseTopic } from '../../src/api/topics.ts';
import { type PayloadName, topicParameters, topicTable } from '../../src/api/topicTable.ts';
import { asyncapi, payloadNames, schemaFile, schemas, tableBegin, tableEnd, topicsMarkdown } from './contractSchemas.ts';

const docs = new URL('../../docs/', import.meta.url);
const update = process.env.UPDATE_DOCS === '1';
const header = '# Written by test/api/contractDocs.test.ts from src/api; UPDATE_DOCS=1 writes it anew.\n';
const asyncapiText = header + stringify(asyncapi(), { lineWidth: 140, aliasDuplicateObjects: false });

function held(file: string, now: string): void {
  const url = new URL(file, docs);
  if (update) writeFileSync(url, now);
  else assert.equal(readFileSync(url, 'utf8'), now, `docs/${file} is not what the code says: UPDATE_DOCS=1`);
}

test('each payload has its JSON Schema, and no other file stands among them', () => {
  for (const name of payloadNames) held(`schemas/${name}.json`, schemaFile(name));
  const wanted = new Set(payloadNames.map((name) => `${name}.json`));
  const others = readdirSync(new URL('schemas/', docs)).filter((file) => !wanted.has(file));
  if (update) for (const file of others) rmSync(new URL(`schemas/${file}`, docs));
  else assert.deepEqual(others, []);
});

test('docs/asyncapi.yaml has every topic of the code', () => held('asyncapi.yaml', asyncapiText));

test('AsyncAPI’s own parser finds nothing wrong in it', async () => {
  const { Parser } = await import('@asyncapi/parser');
  const { document, diagnostics } = await new Parser().parse(asyncapiText);
  assert.deepEqual(
    diagnostics.filter(({ severity }) => severity <= 1).map(({ path, message }) => `${path.join('.')}: ${message}`),
    [],
  );
  assert.equal(document?.channels().length, topicTable.length);
  assert.equal(document?.operations().length, topicTable.length);
});

test('the table in docs/mqtt.md is the one of the code', () => {
  const text = readFileSync(new URL('mqtt.md', docs), 'utf8');
  const [before, rest] = text.split(`${tableBegin}\n`);
  const [, after] = rest?.split(`${tableEnd}\n`) ?? [];
  assert.ok(before !== undefined && after !== undefined, 'docs/mqtt.md has both marks of the table');
  held('mqtt.md', `${before}${tableBegin}\n${topicsMarkdown()}\n${tableEnd}\n${after}`);
});

const sample: Readonly<Record<string, string>> = { machine: '0123456789ab', name: 'configmap:app', file: 'web~2eyaml', part: '2' };
const example = (address: string): string => address.replace(/\{(\w+)\}/g, (_, name: string) => sample[name] ?? 'x1');

test('the table has every topic that the code can read, each once, with at most six slashes and no more than the contract’s sizes of QoS', () => {
  const kinds = topicTable.filter((r) => r.id !== 'homeAssistant').map((r) => parseTopic('podsched/v1', example(r.address))?.of);
  assert.deepEqual(
    [...new Set(kinds)].sort(),
    [
      ...[
        'command',
        'config',
        'desired',
        'desiredMarker',
        'duplicate',
        'events',
        'file',
        'index',
        'info',
        'logs',
        'marker',
        'metrics',
        'online',
        'pod',
      ],
      ...['reply', 'rollout', 'summary', 'sync'],
    ].sort(),
  );
  assert.equal(new Set(topicTable.map((r) => r.id)).size, topicTable.length);
  assert.equal(new Set(topicTable.map((r) => r.address)).size, topicTable.length);
  for (const { address, id } of topicTable) {
    assert.ok(address.split('/').length <= 7, address);
    for (const [, name = ''] of address.matchAll(/\{(\w+)\}/g)) assert.ok(topicParameters[name], `${id}: ${name} is explained`);
  }
});

const exampleSchemas: Readonly<Record<string, PayloadName>> = {
  online: 'NodeOnline',
  info: 'Node',
  summary: 'NodeSummary',
  pod: 'Pod',
  sync: 'SyncStatus',
  file: 'FileStatus',
  event: 'Event',
  metrics: 'NodeMetrics',
  command: 'Command',
  reply: 'Reply',
  index: 'DesiredIndex',
  config: 'NodeConfig',
  rollout: 'Rollout',
  homeAssistant: 'HomeAssistantDevice',
};

test('the examples of docs/mqtt.md fit the schemas as they are written, for a reader who has only those', async () => {
  const { Ajv } = await import('ajv');
  const ajv = new Ajv({ allErrors: true });
  const text = readFileSync(new URL('mqtt.md', docs), 'utf8');
  const examples = [...text.matchAll(/<!-- example: (\w+) -->\n```json\n([\s\S]*?)```/g)];
  assert.ok(examples.length >= 6);
  for (const [, name = '', json = ''] of examples) {
    const schema = exampleSchemas[name];
    assert.ok(schema, `example ${name} has a schema`);
    const valid = ajv.compile(JSON.parse(schemaFile(schema)));
    assert.ok(valid(JSON.parse(json)), `${name}: ${ajv.errorsText(valid.errors)}`);
    assert.deepEqual([...Value.Errors(schemas[schema], JSON.parse(json))], [], name);
  }
});

test('a schema refuses what is not of it', async () => {
  const { Ajv } = await import('ajv');
  const ajv = new Ajv();
  const bad: readonly (readonly [PayloadName, unknown])[] = [
    ['NodeOnline', { apiVersion: 'podsched.dev/v1', kind: 'NodeOnline', state: 'asleep' }],
    ['Pod', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } }],
    ['Command', { apiVersion: 'podsched.dev/v1', kind: 'Command', verb: 'reboot' }],
    ['Envelope', { payloadType: 'text/plain', payload: '', signatures: [{ sig: '' }] }],
    ['Event', { apiVersion: 'v1', kind: 'Event', count: 0 }],
    ['Manifest', { apiVersion: 'v1', kind: 'Deployment', metadata: { name: 'web' } }],
  ];
  for (const [name, value] of bad) assert.equal(ajv.compile(JSON.parse(schemaFile(name)))(value), false, name);
});
