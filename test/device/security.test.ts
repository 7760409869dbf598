/** What a pod's security context, environment and DNS come to inside its containers, on a real containerd: the containers print it themselves. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { container, type Fields, manifest, type PodText, pod } from './manifest.ts';
import { until } from './process.ts';

let bed: Bed;
let agent: Agent;
before(async () => {
  bed = await startBed({ name: 'security' });
  const config = { clusterDomain: 'lab.example', allowedUnsafeSysctls: ['net.core.*'] };
  agent = await startAgent(bed, { nodeName: 'security', config });
});
after(async () => {
  await agent?.remove();
  await bed?.stop();
});

/** Says all there is to say, then serves. */
const tell = [
  'sh',
  '-c',
  'echo id=$(id -u):$(id -g):$(id -G); ' +
    'grep -E "^(CapEff|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status | tr -d "\\t "; ' +
    'env | sort; sed "s/^/resolv /" /etc/resolv.conf; echo name=$(hostname); ' +
    'echo port=$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start); echo conn=$(cat /proc/sys/net/core/somaxconn); ' +
    '(touch /made 2>/dev/null && echo root=writable) || echo root=readonly; (chmod 700 /tmp 2>/dev/null && echo chmod=done) || echo chmod=refused; ' +
    'echo said; trap "exit 0" TERM; sleep 2147483647 & wait',
] as const;
const teller = (name: string, more: Fields = {}) => container(name, tell, more);

const drop = (of: PodText): void => agent.drop(`${of.metadata.name}.yaml`, manifest(of));

/** The lines a container wrote. */
async function said(podName: string, name: string): Promise<string[]> {
  let lines: string[] = [];
  await until(`${name} of ${podName} to speak`, 60_000, () => {
    try {
      const folder = readdirSync(agent.podLogsDir).find((f) => f.startsWith(`default_${podName}_`));
      const text = readFileSync(join(agent.podLogsDir, folder ?? '', name, '0.log'), 'utf8');
      lines = text.split('\n').map((line) => line.split(' ').slice(3).join(' '));
    } catch {
      return false; // not made yet
    }
    return lines.includes('said');
  }).catch((e) => {
    throw new Error(`${e}\n${lines.join('\n')}\n${agent.log().slice(-3000)}`);
  });
  return lines;
}
const has = (lines: readonly string[], ...wanted: readonly string[]): void => {
  for (const line of wanted) assert.ok(lines.includes(line), `${line} is not in\n${lines.join('\n')}`);
};
const value = (lines: readonly string[], key: string): string => lines.find((l) => l.startsWith(key))?.slice(key.length) ?? '';

describe('what containers are and see', { concurrency: 4 }, () => {
  test('users, groups, capabilities, no_new_privs, seccomp and a read-only root reach the process', async () => {
    const bare = { capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] }, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true };
    drop(
      pod('users', {
        securityContext: {
          runAsUser: 1000,
          runAsGroup: 3000,
          fsGroup: 2000,
          supplementalGroups: [4000, 44],
          seccompProfile: { type: 'RuntimeDefault' },
        },
        containers: [
          teller('plain'),
          teller('own', { securityContext: { runAsUser: 2000, runAsNonRoot: true, seccompProfile: { type: 'Unconfined' } } }),
          teller('bare', { securityContext: { runAsUser: 0, ...bare } }),
          teller('whole', { securityContext: { runAsUser: 0, privileged: true } }),
        ],
      }),
    );
    has(await said('users', 'plain'), 'id=1000:3000:3000 44 2000 4000', 'Seccomp:2', 'NoNewPrivs:0', 'CapEff:0000000000000000');
    has(await said('users', 'own'), 'id=2000:3000:3000 44 2000 4000', 'Seccomp:0');
    // NET_ADMIN is bit 12
    has(
      await said('users', 'bare'),
      'id=0:3000:3000 44 2000 4000',
      'CapEff:0000000000001000',
      'CapBnd:0000000000001000',
      'NoNewPrivs:1',
      'root=readonly',
    );
    const whole = await said('users', 'whole');
    has(whole, 'NoNewPrivs:0', 'root=writable');
    assert.ok(BigInt(`0x${value(whole, 'CapEff:')}`) & (1n << 21n), 'privileged has SYS_ADMIN');
  });

  test('a seccomp profile of the node confines the container that names it, and a missing one stops its start', async () => {
    const folder = join(agent.stateDir, 'seccomp', 'mine');
    mkdirSync(folder, { recursive: true });
    const names = ['chmod', 'fchmod', 'fchmodat'];
    const profile = { defaultAction: 'SCMP_ACT_ALLOW', syscalls: [{ names, action: 'SCMP_ACT_ERRNO' }] };
    writeFileSync(join(folder, 'calm.json'), JSON.stringify(profile));
    const localhost = (localhostProfile: string) => ({ securityContext: { seccompProfile: { type: 'Localhost', localhostProfile } } });
    drop(
      pod('profile', { containers: [teller('calm', localhost('mine/calm.json')), teller('free'), teller('lost', localhost('none.json'))] }),
    );
    has(await said('profile', 'calm'), 'Seccomp:2', 'chmod=refused');
    has(await said('profile', 'free'), 'Seccomp:0', 'chmod=done');
    await until('the other container is refused', 60_000, async () => {
      const { stdout } = await agent.cli('get', 'pods', 'profile', '-o', 'json');
      return stdout.includes('CreateContainerError') && stdout.includes('none.json');
    });
  });

  test('environment, DNS, host name and sysctls are those of the manifest', async () => {
    const field = (fieldPath: string) => ({ valueFrom: { fieldRef: { fieldPath } } });
    const resource = (of: string, divisor?: string) => ({
      valueFrom: { resourceFieldRef: { resource: of, ...(divisor !== undefined && { divisor }) } },
    });
    drop(
      pod(
        'words',
        {
          hostname: 'gate',
          subdomain: 'edge',
          setHostnameAsFQDN: true,
          dnsPolicy: 'None',
          dnsConfig: {
            nameservers: ['192.0.2.53'],
            searches: ['lab.example'],
            options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
          },
          securityContext: {
            sysctls: [
              { name: 'net/ipv4/ip_unprivileged_port_start', value: '80' },
              { name: 'net.core.somaxconn', value: '77' },
            ],
          },
          containers: [
            teller('main', {
              resources: { requests: { cpu: '50m', memory: '16Mi' }, limits: { cpu: '500m', memory: '64Mi' } },
              env: [
                { name: 'E_IP', ...field('status.podIP') },
                { name: 'E_HOST', ...field('status.hostIP') },
                { name: 'E_NODE', ...field('spec.nodeName') },
                { name: 'E_LABEL', ...field("metadata.labels['example.com/site']") },
                { name: 'E_CPU', ...resource('limits.cpu', '1m') },
                { name: 'E_MEM', ...resource('requests.memory', '1Mi') },
                { name: 'E_ALL', value: '$(E_NODE)/$(E_CPU)/$(E_LATER)' },
                { name: 'E_LATER', value: 'x' },
              ],
            }),
          ],
        },
        { labels: { 'example.com/site': 'attic' } },
      ),
    );
    const lines = await said('words', 'main');
    has(lines, 'E_NODE=security', 'E_LABEL=attic', 'E_CPU=500', 'E_MEM=16', 'E_ALL=security/500/$(E_LATER)');
    has(lines, 'resolv search lab.example', 'resolv nameserver 192.0.2.53', 'resolv options ndots:2 edns0');
    has(lines, 'name=gate.edge.default.svc.lab.example', 'port=80', 'conn=77');
    const [sandbox] = (await bed.cri.sandboxes()).filter((s) => s.name === 'words');
    assert.ok(sandbox);
    assert.equal(value(lines, 'E_IP='), (await bed.cri.sandboxIps(sandbox.id))[0]);
    assert.match(value(lines, 'E_HOST='), /^[0-9a-f.:]+$/);
    assert.notEqual(value(lines, 'name='), hostname());
  });

  test('a container that must not be root is not made as root, and a sysctl of the machine refuses the pod by path', async () => {
    drop(pod('nonroot', { containers: [teller('main', { securityContext: { runAsNonRoot: true } })] }));
    drop(pod('vm', { securityContext: { sysctls: [{ name: 'vm.swappiness', value: '1' }] } }));
    await until('nonroot is refused', 60_000, async () => {
      const { stdout } = await agent.cli('get', 'pods', 'nonroot', '-o', 'json');
      return stdout.includes('CreateContainerConfigError') && stdout.includes('container has runAsNonRoot and image will run as root');
    });
    assert.equal((await bed.cri.containers()).filter((c) => c.labels['io.kubernetes.pod.name'] === 'nonroot').length, 0);
    const why = async () => (await agent.cli('why', 'vm')).stdout;
    await until('vm is refused', 60_000, async () => /spec\.securityContext\.sysctls\[0\]\.name/.test(await why()));
  });
});
