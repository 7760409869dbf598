/**
 * One pod with everything that can be asked of a pod's life: two init containers with a sidecar between them, all kinds of probes and hooks.
 * What happened is read from the diary that its containers write themselves, from the runtime, and from what hooks asked of a server.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import { type HealthServer, startHealthServer } from './health.ts';
import { type Lab, startLab } from './lab.ts';
import { container, type Fields, manifest, pod } from './manifest.ts';
import { freePort, sleep, until } from './process.ts';
import { conditionOf, type Diary, eventsOf, note, startDiary, statusOf, uptime, watchPod } from './story.ts';
import { agreed, footprint, gone, type Seen, shownOf } from './truth.ts';

let lab: Lab;
let diary: Diary;
let health: HealthServer;
let webPort = 0;
/** What the http hooks asked, and whether the container ran while its hook was answered. */
const hooks: { readonly path: string; readonly agent: string; readonly story: string; readonly running: boolean }[] = [];
const server = createServer(async (req, res) => {
  await sleep(1_500); // whoever asks waits
  const live = (await shownOf(lab, 'whole')).containers.find((c) => c.name === 'live');
  const { 'user-agent': agent = '', 'x-story': story = '' } = req.headers;
  hooks.push({ path: req.url ?? '', agent, story: String(story), running: live?.state === 'running' });
  diary.write(`hook ${req.url}`);
  res.writeHead(500).end(); // any answer is success
});
before(async () => {
  server.listen(0, '127.0.0.1');
  [health, webPort] = await Promise.all([startHealthServer(), freePort(), once(server, 'listening')]);
  diary = startDiary();
  lab = await startLab('whole');
});
after(async () => {
  await lab?.stop();
  diary?.end();
  health?.end();
  server.close();
});

const sh = (script: string): string[] => ['sh', '-c', note + script];
const member = (name: string, script: string, more: Fields = {}) => container(name, sh(script), { volumeMounts: [diary.mount], ...more });
const hook = (path: string) => ({
  httpGet: { host: '127.0.0.1', port: (server.address() as AddressInfo).port, path, httpHeaders: [{ name: 'X-Story', value: 'told' }] },
});
const stay = (name: string, atTerm = '') => `trap 'note "${name} TERM"; ${atTerm} exit 0' TERM; sleep 2147483647 & wait $!`;

/** Ready when it is asked with its header and the diary's folder has `ready`. */
const readyScript = `#!/bin/sh\\nif [ "$HTTP_X_STORY" = whole ] && [ -e /diary/ready ]; then s="200 OK"; else s="503 No"; fi\\nprintf "Status: $s\\\\r\\\\n\\\\r\\\\n"\\n`;

const whole = (liveVersion: string) =>
  pod('whole', {
    hostNetwork: true,
    terminationGracePeriodSeconds: 40,
    volumes: [diary.volume],
    initContainers: [
      member('one', 'note "one begins"; sleep 1; note "one ends"'),
      member('relay', `note "relay begins"; (sleep 2; note "relay is up"; touch /tmp/up) & ${stay('relay')}`, {
        restartPolicy: 'Always',
        startupProbe: { exec: { command: ['test', '-e', '/tmp/up'] }, periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 30 },
        lifecycle: { preStop: { exec: { command: sh('note "relay preStop"') } } },
      }),
      member('two', 'note "two begins"; note "two ends"'),
    ],
    containers: [
      member(
        'web',
        `note "web begins"; mkdir -p /www/cgi-bin; printf '${readyScript}' >/www/cgi-bin/ready; chmod 755 /www/cgi-bin/ready; ` +
          `(sleep 5; note "web listens"; exec httpd -f -p ${webPort} -h /www) & echo $! >/tmp/pid; ${stay('web')}`,
        {
          ports: [{ name: 'http', containerPort: webPort }],
          startupProbe: { tcpSocket: { port: 'http' }, periodSeconds: 1, failureThreshold: 30 },
          readinessProbe: {
            httpGet: { port: 'http', path: '/cgi-bin/ready', httpHeaders: [{ name: 'X-Story', value: 'whole' }] },
            periodSeconds: 1,
            timeoutSeconds: 10,
            failureThreshold: 1,
          },
          lifecycle: {
            postStart: { exec: { command: sh('note "web postStart"') } },
            // its port closes first, and then it has time to be forgotten
            preStop: { exec: { command: sh('note "web preStop"; kill $(cat /tmp/pid); sleep 8; note "web preStop ends"') } },
          },
        },
      ),
      member('live', `note "live begins ${liveVersion}"; ${stay('live', 'rm -f /diary/sick;')}`, {
        livenessProbe: {
          exec: { command: ['sh', '-c', 'if [ -e /diary/sick ]; then echo feeling sick; exit 1; fi'] },
          periodSeconds: 1,
          timeoutSeconds: 10,
          failureThreshold: 2,
        },
        lifecycle: { postStart: hook('/live/postStart'), preStop: hook('/live/preStop') },
      }),
      member('rpc', `note "rpc begins"; ${stay('rpc')}`, {
        readinessProbe: { grpc: { port: health.port, service: 'story' }, periodSeconds: 1 },
        lifecycle: { postStart: { sleep: { seconds: 1 } }, preStop: { sleep: { seconds: 2 } } },
      }),
    ],
  });

/** These entries stand in this order. */
async function inOrder(...texts: string[]): Promise<void> {
  const found = await Promise.all(texts.map((t) => diary.of(t)));
  const order = diary.entries();
  const at = found.map((f) => order.findIndex((e) => e.text === f.text));
  assert.deepEqual(
    at,
    [...at].sort((a, b) => a - b),
    `${texts.join(' < ')} in\n${order.map((e) => `${e.at} ${e.text}`).join('\n')}`,
  );
}
const has = async (...texts: RegExp[]): Promise<void> => {
  for (const t of texts) {
    await until(`${t}`, 30_000, async () => (await eventsOf(lab.agent, 'whole')).some((e) => t.test(e))).catch(async () =>
      assert.fail(`${t} is not among\n${(await eventsOf(lab.agent, 'whole')).join('\n')}`),
    );
  }
};
const ready = (p: ToldPod): boolean => conditionOf(p, 'Ready') === 'True';
let now: Seen;

test('init containers, sidecar, hooks and probes let it become ready in their order and no sooner', async () => {
  const watch = watchPod(lab.agent, 'whole');
  lab.agent.drop('whole.yaml', manifest(whole('1')));
  await diary.of('web listens', 60_000);
  await until('web has started', 45_000, () => statusOf(watch.seen.at(-1)?.pod, 'web')?.started === true);
  await sleep(1_500);
  await has(/^Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503$/);
  assert.ok(
    watch.seen.every((g) => !ready(g.pod)),
    'nobody was ready yet',
  );
  diary.put('ready');
  await until('web is ready', 45_000, () => statusOf(watch.seen.at(-1)?.pod, 'web')?.ready === true);
  assert.ok(!ready(watch.seen.at(-1)?.pod as ToldPod), 'rpc is not');
  health.serving = true;
  now = await agreed(lab, 'whole', (p, s) => ready(p) && s.phase === 'Running');
  await watch.end();

  await inOrder('one begins', 'one ends', 'relay begins', 'relay is up', 'two begins', 'two ends', 'web begins', 'web listens');
  // a hook runs beside its container's command, and the next container comes after both
  await inOrder('two ends', 'web begins', 'live begins 1', 'rpc begins');
  await inOrder('two ends', 'web postStart', 'live begins 1');
  await inOrder('web postStart', 'hook /live/postStart', 'rpc begins');
  assert.deepEqual([...health.asked], ['story']);
  assert.deepEqual(hooks, [{ path: '/live/postStart', agent: 'kube-lifecycle/1.32', story: 'told', running: true }]);
  const [up, listens] = [(await diary.of('relay is up')).at, (await diary.of('web listens')).at];
  for (const { at, pod: p } of watch.seen) {
    const [relay, web] = [statusOf(p, 'relay'), statusOf(p, 'web')];
    if (relay?.started === true) assert.ok(at >= up - 0.02, `relay was told started at ${at}, up at ${up}`);
    if (web?.started === true) assert.ok(at >= listens - 0.02, `web was told started at ${at}, listens at ${listens}`);
    if (web?.started !== true) assert.equal(web?.ready, false);
    if (conditionOf(p, 'Initialized') !== 'True') assert.equal(p.status.phase, 'Pending');
  }
  assert.ok(watch.seen.some((g) => statusOf(g.pod, 'web')?.state.running && statusOf(g.pod, 'web')?.started === false));
  await has(
    /^Unhealthy: Startup probe failed: dial tcp .*: connect: connection refused$/,
    /^Unhealthy: Readiness probe failed: service unhealthy \(responded with "NOT_SERVING"\)$/,
    /^Started: Started container live$/,
  );
});

test('a failing liveness probe ends its container after its preStop, which starts again; nobody else is touched', async () => {
  const from = uptime();
  diary.put('sick');
  const then = now;
  now = await agreed(lab, 'whole', (p) => ready(p) && statusOf(p, 'live')?.restartCount === 1);
  const [preStop, term, begins, postStart] = [
    await diary.of('hook /live/preStop', undefined, from),
    await diary.of('live TERM', undefined, from),
    await diary.of('live begins 1', undefined, from),
    await diary.of('hook /live/postStart', undefined, from),
  ];
  assert.ok(preStop.at <= term.at && term.at <= begins.at && begins.at <= postStart.at, 'in this order');
  assert.ok(preStop.at - from >= 1.4, 'after a hook of 1.5 s');
  assert.equal(hooks.find((h) => h.path === '/live/preStop')?.running, true, 'it ran until its hook had ended');
  assert.deepEqual(footprint(now.shown, 'web', 'relay', 'rpc'), footprint(then.shown, 'web', 'relay', 'rpc'));
  const last = statusOf(now.pod, 'live')?.lastState.terminated;
  assert.equal(last?.exitCode, 0);
  await has(/^Unhealthy: Liveness probe failed: feeling sick\n?$/, /^Killing: Container live failed liveness probe, will be restarted$/);
});

test('an edit of one container replaces that one in place, with its hooks', async () => {
  const from = uptime();
  const then = now;
  lab.agent.drop('whole.yaml', manifest(whole('2')));
  now = await agreed(lab, 'whole', (p) => ready(p) && statusOf(p, 'live')?.restartCount === 2);
  await diary.of('live begins 2');
  assert.ok((await diary.of('hook /live/preStop', undefined, from)).at <= (await diary.of('live TERM', undefined, from)).at);
  assert.equal(now.pod.metadata.uid, then.pod.metadata.uid);
  assert.deepEqual(footprint(now.shown, 'web', 'relay', 'rpc'), footprint(then.shown, 'web', 'relay', 'rpc'));
  await has(/^Killing: Container live definition changed, will be restarted$/);
});

test('a removed pod is told not ready while it drains, its sidecar ends last, and all of it is over within its grace', async () => {
  const watch = watchPod(lab.agent, 'whole');
  const from = uptime();
  lab.agent.removeManifest('whole.yaml');
  const preStop = await diary.of('web preStop', undefined, from);
  const ends = await diary.of('web preStop ends', undefined, from);
  await diary.of('relay TERM', undefined, from);
  await gone(lab, 'whole');
  const took = uptime() - from;
  await watch.end();
  const at = async (text: string) => (await diary.of(text, undefined, from)).at;
  const unready = watch.seen.find((g) => g.at > preStop.at && statusOf(g.pod, 'web')?.ready === false);
  assert.ok(unready && unready.at < ends.at, `not ready at ${unready?.at}, the hook from ${preStop.at} to ${ends.at}`);
  assert.ok(statusOf(unready.pod, 'web')?.state.running, 'it still ran then');
  assert.ok(watch.seen.some((g) => g.pod.metadata.deletionTimestamp !== undefined));
  // hooks of all begin together, and each container has its TERM when its own hook is over
  assert.ok((await at('relay preStop')) < ends.at);
  assert.ok((await at('rpc TERM')) - from >= 2 && (await at('rpc TERM')) < ends.at);
  assert.ok((await at('web TERM')) >= ends.at);
  for (const name of ['web', 'live', 'rpc'])
    assert.ok((await at(`${name} TERM`)) <= (await at('relay TERM')), `${name} before its sidecar`);
  const sidecarAfter = (await at('relay TERM')) - (await at('web TERM'));
  assert.ok(
    sidecarAfter < 20 && took < 38,
    `the sidecar ${sidecarAfter} s after the last other one, all over in ${took} s of a grace of 40 s`,
  );
  await has(/^Killing: Stopping container web$/, /^Killing: Stopping container relay$/);
  assert.deepEqual(lab.witness.offences, []);
});
