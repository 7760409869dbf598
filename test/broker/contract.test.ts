import { MqttBroker } from '../../src/broker/client.ts';
import { startEmbedded } from '../../src/broker/embedded.ts';
import type { Broker } from '../../src/world/broker.ts';
import { BrokerError } from '../../src/world/broker.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { brokerContract } from '../contract/broker.ts';
import { startMosquitto } from '../device/mosquitto.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';

/** A port that is free now may be another test's in a moment; on this one nobody listens. */
const nobody = 'mqtt://127.0.0.1:1';

const fake = async () => {
  const broker = new FakeBroker(systemClock);
  const door: Broker = {
    connect: (o, h, s) => (o.server === 'mqtt://nobody' ? Promise.reject(new BrokerError('nobody')) : broker.connect(o, h, s)),
  };
  return { broker: door, server: 'mqtt://fake', nobody: 'mqtt://nobody', stop: async () => {} };
};
brokerContract('FakeBroker', 5, fake);
brokerContract('FakeBroker', 4, fake);

brokerContract('embedded aedes', 4, async () => {
  const embedded = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
  return {
    broker: new MqttBroker(),
    server: embedded.url,
    retainedComesLate: true,
    nobody,
    stop: () => embedded.close(),
  };
});

for (const version of [5, 4] as const) {
  brokerContract('mosquitto', version, async () => {
    const m = await startMosquitto();
    return { broker: new MqttBroker(), server: m.url, nobody, stop: () => m.stop() };
  });
}
