import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRunArguments } from '../../src/cli/runArgs.ts';

test('keys are flags, with = or a space; a boolean alone is true', () => {
  assert.deepEqual(parseRunArguments(['--config', '/c', '--mqtt.servers=a,b=c', '--strict', '--run-dir', '/r', '--nodeName=']), {
    configFile: '/c',
    flags: { 'mqtt.servers': 'a,b=c', strict: 'true', runDir: '/r', nodeName: '' },
    mistakes: [],
  });
  assert.deepEqual(parseRunArguments(['--config=/c', '--strict=false', '--nonsense=1']).flags, { strict: 'false', nonsense: '1' });
});

test('what is no flag, or has no value, is a mistake', () => {
  assert.equal(parseRunArguments(['now']).mistakes.length, 1);
  assert.equal(parseRunArguments(['-c', 'x']).mistakes.length, 2);
  assert.deepEqual(parseRunArguments(['--nodeName', '--strict']).mistakes, ['--nodeName needs a value']);
  assert.deepEqual(parseRunArguments(['--config']).mistakes, ['--config needs a value']);
});
