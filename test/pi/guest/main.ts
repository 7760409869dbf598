/** What runs in the emulated Pi: the suites that the host asked for in boot.json, in order. */
import { configure } from './agent.ts';
import { startBroker } from './broker.ts';
import { runSuite, type Suite, tell } from './checks.ts';
import { order, ran, run, sleep } from './machine.ts';
import { budgets } from './suiteBudgets.ts';
import { cgroups, systemdDriver } from './suiteCgroups.ts';
import { cgroupTs } from './suiteCgroupTs.ts';
import { devices } from './suiteDevices.ts';
import { disk } from './suiteDisk.ts';
import { eviction } from './suiteEviction.ts';
import { install, upgrade } from './suiteInstall.ts';
import { limits } from './suiteLimits.ts';
import { noMemory } from './suiteNoMemory.ts';
import { beforeReboot, reboot } from './suiteReboot.ts';

const suites: readonly Suite[] = [
  install,
  cgroupTs,
  cgroups,
  limits,
  budgets,
  devices,
  upgrade,
  beforeReboot,
  reboot,
  eviction,
  disk,
  systemdDriver,
  noMemory,
];

// the suite that it happened in is told as one that did not end
process.on('uncaughtException', (e) => {
  console.error(e);
  process.exit(1);
});
if (order.renew) {
  // the settings may be the same as before, and the program is not
  await run('systemctl', 'stop', 'podsched');
  await run('cp', '/mnt/host/podsched.cjs', '/usr/lib/podsched/podsched.cjs');
  await startBroker();
  await run('ctr', '-n', 'k8s.io', 'images', 'import', '/mnt/host/busybox1.tar');
  await configure();
}
for (const name of order.suites) {
  const suite = suites.find((s) => s.name === name);
  if (suite !== undefined) await runSuite(suite);
}
if (order.cut) {
  // nothing is put in order: the host ends the machine here
  await ran('sh', ['-c', 'journalctl --boot --no-pager --output=short-monotonic >/mnt/host/journal.log 2>&1']);
  tell({ kind: 'cut' });
  await sleep(600_000);
}
process.exit(0);
