/**
 * The test files as JavaScript, made once for a run: a file that node's runner starts then loads a few modules instead of having each
 * of some hundred sources looked up and compiled again. What they all share is in modules of its own, packages stay where they are, and a
 * file still knows its own place (`import.meta.url` is that of the source).
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

const place: Plugin = {
  name: 'place',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      return { loader: 'ts', contents: text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)) };
    });
  },
};

/** Where the built form of a file is (relative to the root, as `files` of `builtTests`). */
export const builtPath = (file: string, outdir: string): string => join(outdir, file.replace(/\.ts$/, '.js'));

/** Builds `files` (relative to `root`) into `outdir`, under the same paths. Rejects with esbuild's errors. */
export async function builtTests(root: string, files: readonly string[], outdir: string): Promise<void> {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
    'dependencies' | 'devDependencies',
    Record<string, string>
  >;
  // a package of this project is only sources, and is built like them
  const external = Object.entries({ ...dependencies, ...devDependencies }).flatMap(([name, v]) => (v.startsWith('file:') ? [] : [name]));
  await build({
    absWorkingDir: root,
    entryPoints: [...files],
    outdir,
    outbase: root,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'linked',
    sourcesContent: false,
    external: external.flatMap((name) => [name, `${name}/*`]),
    plugins: [place],
    logLevel: 'error',
  });
}
