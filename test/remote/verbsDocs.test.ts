/** The table of what each command takes, in docs/mqtt.md: from the words that commands are judged by (written anew with UPDATE_DOCS=1). */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { defaultVerbs, verbs } from '../../src/api/verbs.ts';
import { type ArgShape, type ArgSpec, type VerbSpec, verbSpecs } from '../../src/remote/arguments.ts';

const docs = new URL('../../docs/mqtt.md', import.meta.url);
const marked = /<!-- verbs: written by test\/remote\/verbsDocs\.test\.ts -->\n[\s\S]*?<!-- \/verbs -->/;

function shapeText(shape: ArgShape): string {
  switch (shape.kind) {
    case 'text':
      return shape.form === undefined ? 'text' : `a ${shape.form}`;
    case 'word':
      return shape.oneOf.map((w) => `\`${w}\``).join(', ');
    case 'integer':
      return `${shape.min} to ${shape.max}`;
    case 'flag':
      return '`true` or `false`';
    case 'vector':
      return 'a list of texts';
  }
}

const byDefault = (spec: ArgSpec): string =>
  spec.required ? 'must be given' : spec.default === undefined ? 'none' : `\`${String(spec.default)}\``;

const targets: Readonly<Record<VerbSpec['target'], string>> = { none: 'none', optional: 'may be given', pod: '`pod`' };
const answers: Readonly<Record<VerbSpec['answer'], string>> = {
  json: 'JSON',
  text: 'a text',
  log: 'the log',
  output: 'both outputs and `exitCode`',
  message: '`message`',
};

/** A cell of a table. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

function tables(): string {
  const lines = [
    '| verb | does | target | answer |',
    '| --- | --- | --- | --- |',
    ...verbs.map((verb) => {
      const { does, target, answer, slow } = verbSpecs[verb];
      const denied = defaultVerbs.includes(verb) ? '' : '; must be named in the policy';
      return `| \`${verb}\` | ${cell(does)}${denied} | ${targets[target]} | ${answers[answer]}${slow ? ', after `accepted`' : ''} |`;
    }),
    '',
    '| argument | of | is | default | does |',
    '| --- | --- | --- | --- | --- |',
    ...verbs.flatMap((verb) =>
      Object.entries(verbSpecs[verb].args).map(
        ([name, spec]) => `| \`${name}\` | \`${verb}\` | ${shapeText(spec.shape)} | ${byDefault(spec)} | ${cell(spec.does)} |`,
      ),
    ),
  ];
  return lines.join('\n');
}

test('docs/mqtt.md says of each command what it takes', () => {
  const text = readFileSync(docs, 'utf8');
  assert.match(text, marked);
  const now = text.replace(marked, () => `<!-- verbs: written by test/remote/verbsDocs.test.ts -->\n${tables()}\n<!-- /verbs -->`);
  if (process.env.UPDATE_DOCS === '1') writeFileSync(docs, now);
  else assert.equal(text, now);
});
