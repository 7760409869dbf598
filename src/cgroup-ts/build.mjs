// Makes dist/: JavaScript, types, and the package.json that is published (`npm publish dist`). Needs `typescript` and `@types/node` where Node finds them.
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const here = import.meta.dirname;
const dist = join(here, 'dist');
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');

rmSync(dist, { recursive: true, force: true });
execFileSync(process.execPath, [tsc, '-p', join(here, 'tsconfig.build.json')], { stdio: 'inherit', cwd: here });
for (const name of ['README.md', 'LICENSE']) cpSync(join(here, name), join(dist, name));

// the folder itself is sources only, and is not to be published by mistake
const { scripts, private: sourcesOnly, exports, ...rest } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));
const built = Object.fromEntries(
  Object.entries(exports).map(([name, file]) => [
    name,
    file.endsWith('.ts') ? { types: file.replace(/\.ts$/, '.d.ts'), default: file.replace(/\.ts$/, '.js') } : file,
  ]),
);
writeFileSync(join(dist, 'package.json'), `${JSON.stringify({ ...rest, exports: built }, null, 2)}\n`);
