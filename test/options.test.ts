import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationKeys } from '../src/api/configuration.ts';
import type { Problem } from '../src/api/objects.ts';
import { envName, flagPath, type LoadedOptions, loadOptions } from '../src/options.ts';

const path = '/etc/podsched/podsched.yaml';
const fromFile = (text: string, flags: Record<string, string> = {}, env: Record<string, string> = {}): LoadedOptions =>
  loadOptions({ flags, env, file: { path, text } });
const lines = (problems: readonly Problem[]): string[] =>
  problems.map((p) => [p.line, p.column, p.path].filter((part) => part !== undefined).join(':'));

test('every key has a default: nothing at all, an empty file and a file of comments are valid', () => {
  for (const texts of [{}, { file: { path, text: '' } }, { file: { path, text: '# nothing\n---\n' } }]) {
    const loaded = loadOptions({ flags: {}, env: {}, ...texts });
    assert.deepEqual(loaded.problems, []);
    assert.equal(loaded.empty, true);
    for (const [key, { default: value }] of Object.entries(configurationKeys)) assert.deepEqual(loaded.config?.[key], value, key);
  }
});

test('a file that only says what it is has no settings, and is not empty', () => {
  const loaded = fromFile('apiVersion: podsched.dev/v1\nkind: PodschedConfiguration\n');
  assert.equal(loaded.empty, false);
  assert.deepEqual(loaded.fileSettings, {});
  assert.ok(loaded.config);
});

test('the documented file is understood key by key', () => {
  const { config, problems } = fromFile(`
apiVersion: podsched.dev/v1
kind: PodschedConfiguration
nodeName: pi-07
nodeLabels: {site: attic, floor: 2}
syncFrequency: 1m30s
fileCheckFrequency: 500ms0s
strict: no
containerLogMaxSize: 1.5Mi
crashLoopBackOff: {maxContainerRestartPeriod: 1m}
evictionHard: {memory.available: 100Mi}
mqtt:
  servers: [mqtts://broker.example:8883, ws://127.0.0.1:9001, "mqtt://[::1]", embedded]
  embedded: {listen: "127.0.0.1:1884"}
  username: pi
  passwordFile: /etc/podsched/password
  tls: {caFile: /ca, certFile: /cert, keyFile: /key}
  prefix: fleet
  keepalive: 1h
  profile: quiet
policy:
  mqtt: {hostPorts: true, devices: [gpio], maxPods: 30}
devices: {gpio: [/dev/gpiochip*]}
logging: {level: debug}
`);
  assert.deepEqual(lines(problems), ['7:21:fileCheckFrequency']); // half a second is under its least
  assert.equal(config, undefined);
  const good = fromFile('syncFrequency: 1m30s\nstrict: no\ncontainerLogMaxSize: 1.5Mi\nmqtt: {keepalive: 1h, tls: }\nnodeName:\n').config;
  assert.equal(good?.syncFrequency, 90_000);
  assert.equal(good?.strict, false);
  assert.equal(good?.containerLogMaxSize, 1.5 * 2 ** 20);
  assert.equal(good?.['mqtt.keepalive'], 3_600_000);
  assert.equal(good?.nodeName, '');
});

test('flag goes over environment, environment over file, file over default', () => {
  const text = 'mqtt: {prefix: file, username: file, clientId: file}\n';
  const { config } = fromFile(text, { 'mqtt.prefix': 'flag' }, { PODSCHED_MQTT_PREFIX: 'env', PODSCHED_MQTT_USERNAME: 'env' });
  assert.deepEqual(
    [config?.['mqtt.prefix'], config?.['mqtt.username'], config?.['mqtt.clientId'], config?.['mqtt.profile']],
    ['flag', 'env', 'file', 'normal'],
  );
});

test('names in the environment are upper case, with _ for dots and humps, and no two keys share one', () => {
  for (const [key, name] of [
    ['mqtt.passwordFile', 'PODSCHED_MQTT_PASSWORD_FILE'],
    ['mqtt.tls.caFile', 'PODSCHED_MQTT_TLS_CA_FILE'],
    ['imageGCHighThresholdPercent', 'PODSCHED_IMAGE_GC_HIGH_THRESHOLD_PERCENT'],
    ['cgroupsPerQOS', 'PODSCHED_CGROUPS_PER_QOS'],
    ['clusterDNS', 'PODSCHED_CLUSTER_DNS'],
    ['runDir', 'PODSCHED_RUN_DIR'],
    ['crashLoopBackOff.maxContainerRestartPeriod', 'PODSCHED_CRASH_LOOP_BACK_OFF_MAX_CONTAINER_RESTART_PERIOD'],
  ] as const) {
    assert.equal(envName(key), name);
  }
  const all = Object.keys(configurationKeys);
  assert.equal(new Set(all.map(envName)).size, all.length);
});

test('flags are found by their path, and by its words with hyphens', () => {
  assert.equal(flagPath('mqtt.passwordFile'), 'mqtt.passwordFile');
  assert.equal(flagPath('mqtt.password-file'), 'mqtt.passwordFile');
  assert.equal(flagPath('run-dir'), 'runDir');
  assert.equal(flagPath('nonsense'), undefined);
});

test('lists come by comma from flags and environment; maps come from the file alone', () => {
  const { config } = loadOptions({ flags: { 'mqtt.servers': 'embedded, mqtts://b' }, env: { PODSCHED_CLUSTER_DNS: '' } });
  assert.deepEqual(config?.['mqtt.servers'], ['embedded', 'mqtts://b']);
  assert.deepEqual(config?.clusterDNS, []);
  const { problems } = loadOptions({ flags: { nodeLabels: 'a=b', 'policy.mqtt': 'x' }, env: { PODSCHED_DEVICES: 'x' } });
  assert.deepEqual(
    problems.map((p) => p.path),
    ['--nodeLabels', '--policy.mqtt', 'PODSCHED_DEVICES'],
  );
});

test('an address that may hold a password is never repeated, however wrong it is', () => {
  for (const server of ['mqtts://u:CANARY@b', 'http://u:CANARY@b', 'mqtts//u:CANARY@b', 'u:CANARY@b:1883', 'mqtts://u:CAN/ARY@b']) {
    const [problem] = fromFile(`mqtt: {servers: ["${server}"]}`).problems;
    assert.match(problem?.expected ?? '', /mqtt\.passwordFile/, server);
    assert.doesNotMatch(JSON.stringify(problem), /CAN|ARY/, server);
  }
});

test('all mistakes are listed at once, each with its place, what was expected and the nearest name', () => {
  const loaded = fromFile(
    `kind: PodschedConfig
nodeNam: pi
mqtt:
  keepalife: 30s
  prefix: a/b/c
  servers: [mqtt://broker.example, ftp://x, "mqtts://u:secret@b"]
  profile: quite
syncFrequency: 30
maxPods: "many"
strict: "yes"
servers: []
mqtt.username: pi
policy: {file: {hostPort: true}, mqtt: {maxPods: -1, devices: gpio}}
`,
    { 'mqtt.keepalive': '1s', nodename: 'Pi.local' },
    { PODSCHED_SYNC_FREQUENCY: 'often', PODSCHED_RUN_DIR: 'run' },
  );
  assert.equal(loaded.config, undefined);
  const of = (p: string) => loaded.problems.find((q) => q.path === p);
  assert.equal(of('kind')?.expected, 'PodschedConfiguration');
  assert.equal(of('nodeNam')?.nearest, 'nodeName');
  assert.deepEqual([of('mqtt.keepalife')?.nearest, of('mqtt.keepalife')?.line, of('mqtt.keepalife')?.column], ['mqtt.keepalive', 4, 14]);
  assert.equal(of('mqtt.prefix')?.line, 5);
  assert.match(of('mqtt.servers[0]')?.expected ?? '', /mqtts:\/\/ .*insecure/);
  assert.match(of('mqtt.servers[1]')?.expected ?? '', /mqtt, mqtts, ws, wss/);
  assert.match(of('mqtt.servers[2]')?.expected ?? '', /passwordFile/);
  assert.ok(!JSON.stringify(loaded.problems).includes('secret'));
  assert.equal(of('mqtt.profile')?.nearest, 'quiet');
  assert.equal(of('syncFrequency')?.nearest, '30s');
  assert.equal(of('maxPods')?.got, '"many"');
  assert.ok(of('strict'));
  assert.equal(of('servers')?.nearest, 'mqtt.servers');
  assert.equal(of('mqtt.username')?.line, 12);
  assert.equal(of('policy.file.hostPort')?.nearest, 'hostPorts');
  assert.ok(of('policy.mqtt.maxPods') && of('policy.mqtt.devices'));
  assert.equal(of('--mqtt.keepalive')?.expected, 'a duration from 5s to 1h');
  assert.match(of('--nodeName')?.expected ?? '', /a-z, 0-9/);
  assert.ok(of('PODSCHED_SYNC_FREQUENCY'));
  assert.equal(of('PODSCHED_RUN_DIR')?.expected, 'an absolute path');
});

test('a file that is no YAML is told at its place, and what can be read of it is still known', () => {
  const loaded = fromFile('stateDir: /data\nmqtt: {servers: [a}\n');
  assert.equal(loaded.config, undefined);
  assert.equal(loaded.empty, false);
  assert.equal(loaded.problems[0]?.file, path);
  assert.equal(loaded.problems[0]?.line, 2);
  assert.equal(loaded.fileSettings.stateDir, '/data');
  assert.ok(fromFile('a: 1\n---\nb: 2\n').problems.some((p) => p.expected === 'one document'));
  assert.equal(fromFile('- a\n').problems[0]?.expected, 'a mapping');
  assert.equal(fromFile('mqtt: on\n').problems[0]?.path, 'mqtt');
});

test('wholes that cannot be are refused', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['mqtt: {tls: {certFile: /c}}', 'mqtt.tls.keyFile'],
    ['mqtt: {passwordFile: /p}', 'mqtt.username'],
    ['mqtt: {servers: [embedded], embedded: {listen: "0.0.0.0:1883"}}', 'mqtt.embedded.listen'],
    ['mqtt: {servers: [embedded, embedded]}', 'mqtt.servers[1]'],
    ['mqtt: {prefix: a/+}', 'mqtt.prefix'],
    ['mqtt: {prefix: ""}', 'mqtt.prefix'],
    ['nodeName: a.b', 'nodeName'],
    ['nodeLabels: {"-x": y}', 'nodeLabels.-x'],
    ['imageGCLowThresholdPercent: 90', 'imageGCLowThresholdPercent'],
    [`runDir: /${'x'.repeat(100)}`, 'runDir'],
    ['containerRuntimeEndpoint: tcp://x', 'containerRuntimeEndpoint'],
  ];
  for (const [text, expected] of cases) {
    assert.deepEqual(
      fromFile(`${text}\n`).problems.map((p) => p.path),
      [expected],
      text,
    );
  }
});

test('plain mqtt is for loopback, or for whoever asks for it', () => {
  for (const server of ['mqtt://localhost', 'mqtt://127.0.0.1:1', 'ws://[::1]:9/mqtt', 'mqtts://b', 'wss://b/mqtt']) {
    assert.deepEqual(loadOptions({ flags: { 'mqtt.servers': server }, env: {} }).problems, [], server);
  }
  assert.equal(loadOptions({ flags: { 'mqtt.servers': 'ws://b' }, env: {} }).problems[0]?.path, '--mqtt.servers[0]');
  assert.deepEqual(loadOptions({ flags: { 'mqtt.servers': 'mqtt://b', 'mqtt.insecure': 'true' }, env: {} }).problems, []);
});

test('what nothing acts on yet is accepted with a warning, where it was set', () => {
  const { config, warnings } = fromFile('shutdownGracePeriod: 30s\nmaxPods: 110\n', {}, { PODSCHED_METRICS_LISTEN: '127.0.0.1:9300' });
  assert.equal(config?.shutdownGracePeriod, 30_000);
  assert.deepEqual(
    warnings.map((w) => [w.path, w.line, w.got]),
    [
      ['shutdownGracePeriod', 1, 'it has no effect in this version'],
      ['PODSCHED_METRICS_LISTEN', undefined, 'it has no effect in this version'],
    ],
  );
});

test('an unknown name in the environment is told when it looks like a slip of the pen, and never stops the agent', () => {
  const { config, warnings } = loadOptions({
    flags: {},
    env: { PODSCHED_MQTT_PASWORD_FILE: '/x', PODSCHED_BUNDLE: '/y', PODSCHED_SERVICE_HOST: '10.0.0.1', HOME: '/' },
  });
  assert.ok(config);
  assert.deepEqual(
    warnings.map((w) => w.nearest),
    ['PODSCHED_MQTT_PASSWORD_FILE'],
  );
});

test('stored settings stand in for the file, flags still go over them; what another version stored wrongly is left out', () => {
  const settings = { 'mqtt.prefix': 'a', syncFrequency: 5000, maxPods: 'x', unknown: 1, clusterDNS: {} };
  const { config, problems } = loadOptions({ flags: { 'mqtt.prefix': 'b' }, env: {}, settings });
  assert.deepEqual(problems, []);
  assert.deepEqual([config?.['mqtt.prefix'], config?.syncFrequency, config?.maxPods, config?.clusterDNS], ['b', 5000, 110, []]);
});

test('where the pods’ cgroups begin is a path that both drivers can spell', () => {
  for (const good of ['', '/', '/edge', 'edge/my-pods', '/edge.d/pods/'])
    assert.deepEqual(fromFile(`cgroupRoot: "${good}"\n`).problems, [], good);
  for (const bad of ['/edge.slice', '../up', '/a//b', 'my_pods', '/cgroup.procs', '/a b']) {
    const [problem] = fromFile(`cgroupRoot: "${bad}"\n`).problems;
    assert.equal(problem?.path, 'cgroupRoot', bad);
  }
  assert.equal(fromFile('podPidsLimit: 100\n').config?.podPidsLimit, 100);
  assert.equal(fromFile('cgroupsPerQOS: false\n').config?.cgroupsPerQOS, false);
});
