/** A fake runtime behind a real socket, and the door to it, for the tests of this room. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type CriOptions, CriRuntime } from '../../src/cri/runtime.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeCriServer, type FakeCriServerOptions } from '../fakes/fakeCriServer.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

export interface Rig {
  readonly dir: string;
  readonly socket: string;
  /** The machine behind the server. */
  readonly fake: FakeRuntime;
  readonly server: FakeCriServer;
  readonly runtime: CriRuntime;
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The server is not started yet; everything ends with the test. */
export function rig(t: TestContext, o: Partial<CriOptions> & Pick<FakeCriServerOptions, 'events' | 'runtimeConfig'> = {}): Rig {
  const { events, runtimeConfig, ...cri } = o;
  const dir = mkdtempSync(join(tmpdir(), 'podsched-cri-'));
  const socket = join(dir, 'cri.sock');
  const fake = new FakeRuntime({ clock: systemClock });
  const server = new FakeCriServer({
    runtime: fake,
    socket,
    ...(events === undefined ? {} : { events }),
    ...(runtimeConfig === undefined ? {} : { runtimeConfig }),
  });
  const runtime = new CriRuntime({ endpoint: `unix://${socket}`, log: silentLog, ...cri });
  t.after(() => {
    runtime.close();
    server.stop();
    fake.close();
    rmSync(dir, { recursive: true, force: true });
  });
  return { dir, socket, fake, server, runtime };
}
