import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { startAgent } from './agent.ts';
import { startBed } from './bed.ts';
import { commander } from './commands.ts';
import { ownTopic, startFleet } from './fleet.ts';
import { manifest, pod } from './manifest.ts';
import { sleep } from './process.ts';
import { agreed } from './truth.ts';
import { watchTopics } from './watcher.ts';
const common = { fileCheckFrequency: '1s', nodeStatusUpdateFrequency: '5s', mqtt: { groups: ['cams'] } };
const fleet = await startFleet('zz', {
  one: { config: { ...common, logging: { level: 'debug' }, homeAssistant: { enabled: true }, policy: { file: { allow: 'all' }, mqtt: { verbs: ['get', 'restart', 'decommission'] } } } },
});
const one = fleet.node('one');
try {
  const stub = await watchTopics(fleet.broker.url, 'homeassistant/#');
  stub.onMessage = (m) => console.log(Math.round(m.at), m.topic, m.text.length);
  one.agent.drop('filed.yaml', manifest(pod('filed')));
  await fleet.keep(ownTopic(one, 'topical'), manifest(pod('topical')));
  await agreed(one, 'filed'); await agreed(one, 'topical');
  await sleep(3000);
  console.log('say online', performance.now());
  await stub.client.publishAsync('homeassistant/status', 'online', { qos: 1 });
  console.log(readdirSync(one.agent.stateDir, {recursive:true}).slice(0,40));
  await sleep(33000);
  console.log('HA END');
  console.log([...fleet.watcher.values].filter(([t]) => /online|duplic/.test(t)));
  const asker = await commander(fleet.broker.url, 'one', 5);
  const a = await asker.ask('decommission', { args: { confirm: 'one' } });
  console.log(a.replies);
  await sleep(35000);
  console.log([...fleet.watcher.values.keys()].filter((t) => t.startsWith('podsched/v1/nodes')), fleet.watcher.heard.slice(-40).map((h)=>[h.topic,h.text.length, h.at]));
  await asker.end();
  await stub.end();
  console.log('ONE', one.agent.log().slice(-6000));
} finally { await fleet.stop(); }
