/** `podsched doctor` as a person calls it, on a machine without containerd. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { doctor } from '../../src/cli/doctor.ts';

async function call(t: TestContext, toml: string | undefined, o: { readonly fix?: true; readonly onlyFix?: true } = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-doctor-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'config.toml');
  if (toml !== undefined) writeFileSync(file, toml);
  writeFileSync(
    join(dir, 'podsched.yaml'),
    `apiVersion: podsched.dev/v1\nkind: PodschedConfiguration\ncontainerRuntimeEndpoint: unix://${dir}/none.sock\nstaticPodPath: ${dir}\nstateDir: ${dir}/state\n`,
  );
  const said = { out: '', err: '' };
  const code = await doctor(
    { config: join(dir, 'podsched.yaml'), containerdConfig: file, ...o },
    {
      out: (text) => {
        said.out += text;
      },
      err: (text) => {
        said.err += text;
      },
      nowMs: () => 0,
      sleep: async () => {},
    },
  );
  return { ...said, code, dir, file };
}

test('it looks at the machine that podsched.yaml describes, a line for each finding, and changes nothing', async (t) => {
  const { out, code, dir, file } = await call(t, 'version = 2\n');
  const lines = out.split('\n');
  assert.ok(lines.includes(`ok     node: Node ${process.versions.node}`), out);
  assert.match(out, /^WRONG {2}containerd: nobody answers on unix:\/\/.*none\.sock: .*\n {7}apt-get install containerd/m);
  assert.ok(lines.includes(`ok     manifests: ${dir} can be read`), out);
  assert.ok(lines.includes(`ok     state: ${dir}/state is made at the first start`), out);
  assert.equal(code, 1);
  assert.equal(readFileSync(file, 'utf8'), 'version = 2\n');
});

test('--fix names our image in the file of containerd, says where the old one is, and does not restart anything by itself', async (t) => {
  const { out, file } = await call(t, 'version = 2\n', { fix: true });
  assert.match(out, /config\.toml names podsched\.dev\/pause:1 now; what was there is in .*config\.toml\.before-podsched\n/);
  assert.match(out, /Now: systemctl restart containerd \(pods keep running\)\n/);
  assert.match(readFileSync(file, 'utf8'), /sandbox_image = "podsched\.dev\/pause:1"/);
});

test('--only-fix names our image, and looks at nothing', async (t) => {
  const { out, code, file } = await call(t, 'version = 2\n', { onlyFix: true });
  assert.match(
    out,
    /^\S*config\.toml names podsched\.dev\/pause:1 now; what was there is in \S*\nNow: systemctl restart containerd [^\n]*\n$/,
  );
  assert.equal(code, 0);
  assert.match(readFileSync(file, 'utf8'), /sandbox_image = "podsched\.dev\/pause:1"/);
});

test('a file that is left to a person is no success of --only-fix', async (t) => {
  const { code } = await call(t, 'version = 2\nimports = ["/x"]\n', { onlyFix: true });
  assert.equal(code, 1);
});

test('a file that is left to a person comes with the lines to add', async (t) => {
  const { err, file } = await call(t, 'version = 2\nimports = ["/x"]\n', { fix: true });
  assert.match(
    err,
    /is left as it is: it imports other files, which may set the same\. Please add:\n\n\[plugins\."io\.containerd\.grpc\.v1\.cri"\]\n/,
  );
  assert.equal(readFileSync(file, 'utf8'), 'version = 2\nimports = ["/x"]\n');
});
