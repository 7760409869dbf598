// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of manifests, not templates
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateFiles } from '../../src/operations/validate.ts';
import { loadOptions } from '../../src/options.ts';

const pod = (name: string, image = 'image: busybox') =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\nspec:\n  containers:\n  - name: app\n    ${image}\n`;
const file = (path: string, text: string) => ({ path, content: { ok: true as const, bytes: new TextEncoder().encode(text) } });
const validate = (files: Parameters<typeof validateFiles>[0], strict = false) =>
  validateFiles(files, { strict, checkConfiguration: (f) => loadOptions({ flags: {}, env: {}, file: f }) });

test('each mistake has its file as written, line and column', () => {
  const [result] = validate([file('dir/web.yaml', pod('web', 'image: 5'))]);
  const [problem] = result?.problems ?? [];
  assert.deepEqual([problem?.file, problem?.line, problem?.column, problem?.path], ['dir/web.yaml', 8, 12, 'spec.containers[0].image']);
});

test('a good file says which objects it holds; an unknown field is a warning, and a mistake when strict', () => {
  const text = pod('web', 'image: busybox\n    imagePulPolicy: Never');
  assert.deepEqual(validate([file('web.yaml', text)])[0]?.objects, ['Pod/default/web']);
  assert.equal(validate([file('web.yaml', text)])[0]?.warnings[0]?.nearest, 'imagePullPolicy');
  assert.equal(validate([file('web.yaml', text)], true)[0]?.problems[0]?.nearest, 'imagePullPolicy');
});

test('podsched.yaml is judged as configuration, by its name or by its kind', () => {
  assert.equal(validate([file('/etc/podsched/podsched.yaml', 'nodeNam: x\n')])[0]?.problems[0]?.nearest, 'nodeName');
  assert.equal(validate([file('-', 'kind: PodschedConfiguration\nnodeNam: x\n')])[0]?.problems[0]?.line, 2);
  assert.deepEqual(validate([file('podsched.yaml', '')])[0]?.problems, []);
});

test('the same object in two files, and a name that the agent does not read, are warnings', () => {
  const results = validate([file('a.yaml', pod('web')), file('b.yaml', pod('web')), file('c.yaml.bak', pod('cam'))]);
  assert.deepEqual(
    results.map((r) => [r.problems.length, r.warnings.length]),
    [
      [0, 0],
      [0, 1],
      [0, 1],
    ],
  );
  assert.match(results[1]?.warnings[0]?.got ?? '', /a\.yaml has too/);
});

test('a file that cannot be read is a mistake', () => {
  const [result] = validate([{ path: 'gone.yaml', content: { ok: false, reason: 'SourceUnreadable', message: 'no such file' } }]);
  assert.equal(result?.problems[0]?.got, 'no such file');
});

test('sysctls that a podsched.yaml among the files allows are right in the manifests beside it', () => {
  const sysctls = 'spec:\n  securityContext:\n    sysctls: [{name: net.core.somaxconn, value: "99"}]\n';
  const manifest = file('web.yaml', pod('web').replace('spec:\n', sysctls));
  assert.equal(validate([manifest])[0]?.problems[0]?.path, 'spec.securityContext.sysctls[0].name');
  assert.deepEqual(validate([manifest, file('podsched.yaml', 'allowedUnsafeSysctls: [net.core.*]\n')])[0]?.problems, []);
});

test('what depends on the node is judged by its form, and a likely slip is a warning', () => {
  const text = pod('web-${NODE.name}', 'image: busybox:${NODE.arhc}');
  const [result] = validate([file('web.yaml', text)]);
  assert.deepEqual([result?.problems, result?.objects], [[], ['Pod/default/web-name']]);
  assert.deepEqual(
    result?.warnings.map((w) => [w.path, w.nearest, w.line]),
    [['spec.containers[0].image', '${NODE.arch}', 8]],
  );
  assert.match(validate([file('web.yaml', pod('web-${NODE.name'))])[0]?.problems[0]?.expected ?? '', /a } behind the name/);
  const two = validate([file('a.yaml', pod('web-${NODE.rack}')), file('b.yaml', pod('web-${NODE.row}'))]);
  assert.deepEqual(
    two.flatMap((r) => r.warnings),
    [],
  );
});
