/** A mosquitto beside the agent, and a reader that keeps everything it heard with its time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { brokerPort } from './agent.ts';
import { run, until, write } from './machine.ts';

export interface Heard {
  /** performance.now() of its arrival. */
  readonly at: number;
  readonly topic: string;
  readonly text: string;
}

export interface Ears {
  readonly heard: readonly Heard[];
  /** The last payload under a topic that ends so. */
  last(end: string): unknown;
  end(): void;
}

/** Sets the broker up for this boot and those that follow. It keeps nothing over a reboot. */
export async function startBroker(): Promise<void> {
  write(
    '/etc/mosquitto/pi.conf',
    `user root\npersistence false\nlog_dest stderr\nlistener ${brokerPort} 127.0.0.1\nallow_anonymous true\n`,
  );
  write(
    '/etc/systemd/system/pi-broker.service',
    '[Unit]\nBefore=podsched.service\n[Service]\nType=exec\nOOMScoreAdjust=-900\nExecStart=/usr/sbin/mosquitto -c /etc/mosquitto/pi.conf\n[Install]\nWantedBy=multi-user.target\n',
  );
  // it reads the units anew by itself, and that takes ten seconds here
  await run('systemctl', 'enable', '--now', 'pi-broker');
}

/** Listens to all of podsched's topics until `end`. */
export async function listen(port = brokerPort): Promise<Ears> {
  const heard: Heard[] = [];
  let child: ChildProcess | undefined;
  let over = false;
  let rest = '';
  const start = (): void => {
    child = spawn('mosquitto_sub', ['-h', '127.0.0.1', '-p', String(port), '-t', 'podsched/v1/#', '-F', '%t %x'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      const all = (rest + part).split('\n');
      rest = all.pop() ?? '';
      for (const line of all) {
        const at = line.lastIndexOf(' ');
        heard.push({ at: performance.now(), topic: line.slice(0, at), text: Buffer.from(line.slice(at + 1), 'hex').toString() });
      }
    });
    child.once('exit', () => {
      if (!over) setTimeout(start, 1000);
    });
  };
  start();
  await until('something on the broker', 60, () => heard.length > 0 || undefined);
  return {
    heard,
    last: (end) => {
      const found = heard.findLast((h) => h.topic.endsWith(end) && h.text !== '');
      return found === undefined ? undefined : JSON.parse(found.text);
    },
    end: () => {
      over = true;
      child?.kill();
    },
  };
}
