// Builds bundle/podsched.cjs: one CommonJS file with everything in it. (ESM output of these packages throws on dynamic require.)
// No native addon may get in: the file must run on any board that has Node. Prints its size; bundle/meta.json says what is inside.
import { chmodSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const here = (name) => new URL(name, import.meta.url).pathname;
const outfile = here('podsched.cjs');

// ws and debug ask for these in a try block and do without them; nothing else may stay outside of the file
const optional = ['bufferutil', 'utf-8-validate', 'supports-color'];
const addonLoaders = /^(bindings|node-gyp-build|node-pre-gyp|@mapbox\/node-pre-gyp|prebuild-install)$/;

const noAddons = {
  name: 'no native addon',
  setup(b) {
    b.onResolve({ filter: /\.node$|^(bindings|node-gyp-build|node-pre-gyp|@mapbox\/node-pre-gyp|prebuild-install)$/ }, (args) => {
      if (!args.path.endsWith('.node') && !addonLoaders.test(args.path)) return undefined;
      return { errors: [{ text: `native addon: ${args.path}, wanted by ${args.importer}` }] };
    });
  },
};

/**
 * What packages ask for and the agent never calls: channelz and ORCA services, SOCKS proxies, a browser's timers, sensors of other machines. A
 * sixth of the file.
 */
const neverCalled = {
  '@grpc/proto-loader': ['loadSync'],
  socks: ['SocksClient'],
  'worker-timers': ['setInterval', 'clearInterval'],
  'osx-temperature-sensor': [],
  'macos-temperature-sensor': [],
};

const stubs = {
  name: 'stubs for what is never called',
  setup(b) {
    b.onResolve({ filter: /^[@a-z]/ }, ({ path }) => (path in neverCalled ? { path, namespace: 'stub' } : undefined));
    // of systeminformation only what the board, the processor and the disks are is asked for
    b.onResolve({ filter: /^\.\// }, ({ path, importer }) =>
      /systeminformation\/lib\/index\.js$/.test(importer) && !/^\.\/(system|cpu|filesystem|util)$/.test(path)
        ? { path, namespace: 'stub' }
        : undefined,
    );
    b.onLoad({ filter: /.*/, namespace: 'stub' }, ({ path }) => ({
      contents: (neverCalled[path] ?? [])
        .map((name) => `exports.${name} = function () { throw new Error('${path} is not in this bundle'); };`)
        .join('\n')
        .concat(path === 'socks' ? '\nexports.SocksClient.createConnection = exports.SocksClient;' : ''),
    }));
  },
};

const { version } = JSON.parse(readFileSync(here('../package.json'), 'utf8'));

const result = await build({
  entryPoints: [here('../src/main.ts')],
  outfile: `${outfile}.new`,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  minify: true,
  metafile: true,
  legalComments: 'eof',
  define: { PODSCHED_VERSION: JSON.stringify(version) },
  banner: { js: '#!/usr/bin/env node' },
  external: optional,
  plugins: [noAddons, stubs],
  logLevel: 'warning',
}).catch(() => process.exit(1)); // esbuild has said why

const [output] = Object.values(result.metafile.outputs);
const outside = output.imports.filter((i) => i.external && !i.path.startsWith('node:') && !optional.includes(i.path)).map((i) => i.path);
const { builtinModules } = await import('node:module');
const missing = outside.filter((path) => !builtinModules.includes(path));
if (missing.length > 0) {
  console.error(`these would have to be installed beside the bundle: ${missing.join(', ')}`);
  process.exit(1);
}

// one character beyond Latin-1 would double the memory that Node keeps the whole text in; esbuild leaves those in regular expressions
const text = readFileSync(`${outfile}.new`, 'utf8');
writeFileSync(
  `${outfile}.new`,
  text.replace(/[^\0-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`),
);
chmodSync(`${outfile}.new`, 0o755);
renameSync(`${outfile}.new`, outfile); // whole or not at all: an agent may be starting from it
writeFileSync(here('meta.json'), JSON.stringify(result.metafile));

/** Bytes in the output by package; our own code under `src`. */
const sizes = new Map();
for (const [file, { bytesInOutput }] of Object.entries(output.inputs)) {
  const name = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? 'src';
  sizes.set(name, (sizes.get(name) ?? 0) + bytesInOutput);
}
const kB = (bytes) => `${Math.round(bytes / 1000)} kB`;
const largest = [...sizes].sort((a, b) => b[1] - a[1]).slice(0, 8);
console.log(`bundle/podsched.cjs: ${kB(statSync(outfile).size)} (${largest.map(([name, bytes]) => `${name} ${kB(bytes)}`).join(', ')})`);
