/** The laws of the house: down only and never sideways, one door per package, decisions read only their arguments. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, normalize, relative } from 'node:path';
import { test } from 'node:test';

const root = new URL('../../src/', import.meta.url).pathname;
const everything = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((f) => f.endsWith('.ts'))
  .map((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    const imports = [
      ...text.matchAll(/^(?:import|export)\s+(type\s)?[^;]*?from\s+'([^']+)'|import\(\s*'([^']+)'\s*\)|^import\s+'([^']+)'/gm),
    ].map((m) => ({
      typeOnly: m[1] !== undefined,
      from: m[2] ?? m[3] ?? m[4] ?? '',
    }));
    return { file, text, imports };
  });
/** A package of its own, with laws of its own. */
const ownPackage = 'cgroup-ts/';
const sources = everything.filter((s) => !s.file.startsWith(ownPackage));

/** Higher floors see lower ones. */
const floors: Readonly<Record<string, number>> = {
  'main.ts': 6,
  cli: 5,
  dashboard: 5,
  'options.ts': 4,
  'syncloop.ts': 3,
  'podsync.ts': 3,
  'housekeeping.ts': 3,
  'telling.ts': 3,
  'instances.ts': 3,
  remote: 3,
  server: 3,
  operations: 2.5,
  config: 2,
  pod: 2,
  pleg: 2,
  kuberuntime: 2,
  images: 2,
  prober: 2,
  status: 2,
  volumes: 2,
  gates: 2,
  admission: 2,
  updates: 2,
  cm: 2,
  eviction: 2,
  cri: 2,
  broker: 2,
  node: 2,
  store: 2,
  homeassistant: 2,
  container: 1,
  handlers: 1,
  policy: 1,
  api: 0,
  world: 0,
  async: 0,
};

/** Floors whose files are one another's neighbours by design: the loop and its steps, the wiring and its options; words, time and waiting. */
const sameFloorAllowed = new Set([0, 4]);

const doors: Readonly<Record<string, readonly string[]>> = {
  '@grpc/grpc-js': ['cri'],
  '@bufbuild/protobuf': ['cri'],
  ws: ['cri'],
  mqtt: ['broker'],
  aedes: ['broker'],
  systeminformation: ['node'],
  yaml: ['config'],
  pino: ['world'],
  '@sinclair/typebox': ['api'],
  'prom-client': ['server'],
  commander: ['cli'],
  'cli-table3': ['cli'],
  'cgroup-ts': ['cm'],
};

const roomOf = (file: string): string => file.split('/')[0] ?? file;
/** The wiring is many files of one floor: `kubelet.ts`, `kubeletImages.ts`, `agent.ts` … */
const floorOf = (room: string): number | undefined => (/^(kubelet|agent)[A-Za-z]*\.ts$/.test(room) ? 4 : floors[room]);
const target = (file: string, from: string): string => relative(root, normalize(join(root, file, '..', from)));

test('every file stands in a known room, at most two folders deep', () => {
  for (const { file } of sources) {
    assert.ok(floorOf(roomOf(file)) !== undefined, `${file}: unknown room`);
    assert.ok(file.split('/').length <= (file.startsWith('cri/gen/') ? 3 : 2), `${file}: too deep`);
  }
});

test('imports go down or stay in their room, never sideways', () => {
  for (const { file, imports } of sources) {
    for (const { from } of imports.filter((i) => i.from.startsWith('.'))) {
      assert.match(from, /\.(ts|js|json)$/, `${file}: import ${from} without its ending`);
      const mine = roomOf(file);
      const theirs = roomOf(target(file, from));
      if (mine === theirs) continue;
      const [a, b] = [floorOf(mine) ?? Number.NaN, floorOf(theirs) ?? Number.NaN];
      assert.ok(b < a || (a === b && sameFloorAllowed.has(a)), `${file} (floor ${a}) imports ${from} (floor ${b})`);
    }
  }
});

test('each package enters through its one door', () => {
  for (const { file, imports } of sources) {
    for (const { from } of imports.filter((i) => !i.from.startsWith('.') && !i.from.startsWith('node:'))) {
      const name = from.startsWith('@') ? from.split('/').slice(0, 2).join('/') : (from.split('/')[0] ?? from);
      const allowed = doors[name];
      assert.ok(allowed, `${file} imports ${from}, which has no door`);
      assert.ok(allowed.includes(roomOf(file)), `${file} imports ${from}; its door is ${allowed.join(', ')}`);
    }
  }
});

test('a pure file reads only its arguments', () => {
  const pure = new Set(sources.filter((s) => s.text.startsWith('// pure')).map((s) => s.file));
  assert.ok(pure.size > 5);
  for (const { file, text, imports } of sources.filter((s) => pure.has(s.file))) {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '').replace(/'(?:[^'\\\n]|\\.)*'/g, "''");
    const broken = /Date\.now|new Date\(\)|Math\.random|\bprocess\.|\bawait\b|setTimeout|setInterval|setImmediate/.exec(code);
    assert.equal(broken, null, `${file}: ${broken?.[0]}`);
    for (const { from, typeOnly } of imports) {
      if (typeOnly || from === 'node:crypto' || from === '@sinclair/typebox') continue;
      assert.ok(from.startsWith('.') && pure.has(target(file, from)), `${file} is pure and imports ${from}, which is not`);
    }
  }
});

test('no barrels, no utils, no helpers, no file that hides a second truth', () => {
  for (const { file, text } of sources) {
    assert.doesNotMatch(file, /(^|\/)(index|utils?|helpers?)\.ts$/);
    if (file.startsWith('cri/gen/') || file === 'api/v1.ts' || file === 'api/fieldTable.ts') continue;
    assert.ok(text.split('\n').length <= 400, `${file} has more than 400 lines`);
  }
});

test('cgroup-ts is a package of its own: it knows nothing of podsched, needs no other package, and has no big file either', () => {
  const own = everything.filter((s) => s.file.startsWith(ownPackage));
  assert.ok(own.length > 5);
  for (const { file, text, imports } of own) {
    for (const { from } of imports)
      assert.ok(
        from.startsWith('node:') || from.includes('$') || (from.startsWith('.') && target(file, from).startsWith(ownPackage)),
        `${file} imports ${from}`,
      );
    assert.doesNotMatch(text, /podsched/i, file);
    assert.ok(text.split('\n').length <= 400, `${file} has more than 400 lines`);
  }
});
