/** The runtime contract on the fake, and on the fake behind real gRPC with each kind of event service. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { absentDevice, behaviourOf, exits3, hearsTerm, notThere, runtimeContract, sleeps } from '../contract/runtime.ts';
import { FakeCriServer } from '../fakes/fakeCriServer.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

function fake(): FakeRuntime {
  const runtime = new FakeRuntime({ clock: systemClock });
  runtime.absentDevices.add(absentDevice);
  // over the wire a command is another array of the same words
  const known = new Map([sleeps, exits3, hearsTerm, notThere].map((c) => [c.join(' '), c]));
  runtime.onStart((_name, config) => behaviourOf(known.get(config.command.join(' ')) ?? config.command));
  return runtime;
}

runtimeContract('the fake', async () => {
  const runtime = fake();
  return { runtime, images: runtime, image: 'localhost/busybox:1', logDirectory: '/var/log/pods', close: async () => runtime.close() };
});

for (const events of ['containerd', 'cri'] as const) {
  runtimeContract(`the fake behind gRPC, ${events} events`, async () => {
    const dir = mkdtempSync(join(tmpdir(), 'podsched-cri-'));
    const socket = join(dir, 'cri.sock');
    const behind = fake();
    const server = new FakeCriServer({ runtime: behind, socket, events, runtimeConfig: events === 'cri' });
    await server.start();
    const runtime = new CriRuntime({ endpoint: `unix://${socket}`, log: silentLog });
    const close = async () => {
      runtime.close();
      server.stop();
      behind.close();
      rmSync(dir, { recursive: true });
    };
    return { runtime, images: runtime.images, image: 'localhost/busybox:1', logDirectory: '/var/log/pods', close };
  });
}
