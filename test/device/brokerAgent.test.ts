/**
 * The whole bundle in a fleet as it is shipped: mutual TLS, the shipped access list, an operator with a certificate of her own. No runtime is
 * there, which the agent says and goes on; what comes from the broker it takes all the same.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Agent, startAgent } from './agent.ts';
import { type Authority, fleetBroker, makeAuthority } from './brokerShipped.ts';
import { manifest, pod } from './manifest.ts';
import { type Mosquitto, startMosquitto } from './mosquitto.ts';
import { type RunResult, until } from './process.ts';

let authority: Authority;
let broker: Mosquitto;
const agents: Agent[] = [];
const url = (): string => `mqtts://127.0.0.1:${broker.port}`;
const files = (name: string) => ({
  caFile: join(authority.dir, 'ca.crt'),
  certFile: join(authority.dir, `${name}.crt`),
  keyFile: join(authority.dir, `${name}.key`),
});
before(async () => {
  authority = await makeAuthority('--server', '127.0.0.1', '--node', 'pi-1', '--node', 'pi-2', '--operator', 'ops-1');
  broker = await startMosquitto(fleetBroker(authority));
  for (const nodeName of ['pi-1', 'pi-2'])
    agents.push(
      await startAgent(
        { endpoint: 'unix:///nonexistent/containerd.sock' },
        { nodeName, servers: [url()], config: { mqtt: { tls: files(nodeName) } } },
      ),
    );
});
after(async () => {
  for (const agent of agents) await agent.remove();
  await broker?.stop();
  await authority?.stop();
});

/** As a person with this certificate. */
function as(name: string, ...args: string[]): Promise<RunResult> {
  const { caFile, certFile, keyFile } = files(name);
  const agent = agents[0] as Agent;
  return agent.cli(...args, '--server', url(), '--ca-file', caFile, '--cert-file', certFile, '--key-file', keyFile);
}

test('nodes are online over mutual TLS; an operator lists them, applies, asks and deletes; what only one node may have the other never sees', async () => {
  let listed = '';
  await until('both nodes are listed as online', 60_000, async () => {
    listed = (await as('ops-1', 'get', 'nodes')).stdout;
    return /pi-1\s+.*pi-2\s+/s.test(listed) && !/offline|stale|lost/i.test(listed);
  }).catch((e) => {
    throw new Error(`${e}\n${listed}\n${agents[0]?.log().slice(-2000)}`);
  });
  const agent = agents[0] as Agent;
  agent.drop('../web.json', manifest(pod('web')));
  const file = join(agent.dir, 'web.json');
  const applied = await as('ops-1', 'apply', '-f', file, '--node', 'pi-1');
  assert.equal(applied.code, 0, applied.stderr);
  const sync = async (of: Agent): Promise<string> => (await of.get('/sync')).body;
  await until('pi-1 has taken it', 45_000, async () => (await sync(agents[0] as Agent)).includes('"mqtt:node"'));
  assert.ok(!(await sync(agents[1] as Agent)).includes('"web"'));
  let why: RunResult | undefined;
  await until('its answer comes', 60_000, async () => {
    why = await as('ops-1', 'why', 'web', '--node', 'pi-1');
    return why.code === 0;
  }).catch((e) => {
    throw new Error(`${e}: ${why?.stderr}`);
  });
  assert.match(why?.stdout ?? '', /runtime/i);
  const deleted = await as('ops-1', 'delete', 'web', '--node', 'pi-1');
  assert.equal(deleted.code, 0, deleted.stderr);
  // without a runtime nobody can say that nothing of it runs: what nobody wants any more is told as ending
  await until('nobody wants it', 45_000, async () => !(await sync(agents[0] as Agent)).includes('"mqtt:node"'));
});

test('a node’s certificate is no operator’s: what it publishes for another node, or asks of it, arrives nowhere', async () => {
  const agent = agents[1] as Agent;
  agent.drop('../evil.json', manifest(pod('evil')));
  await as('pi-1', 'apply', '-f', join(agent.dir, 'evil.json'), '--node', 'pi-2', '--no-index');
  const asked = await as('pi-1', 'why', 'evil', '--node', 'pi-2');
  assert.notEqual(asked.code, 0);
  assert.ok(!(await agent.get('/sync')).body.includes('evil'));
});
