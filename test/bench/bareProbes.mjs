// The floor of probing: the same requests, as often and spread as the probes are, by bare node:http. Each on a connection of its own, its
// answer read whole; no more than that: nothing is timed out, counted or kept. Arguments: the port, then the paths.
import { Agent, get } from 'node:http';

const [port, ...paths] = process.argv.slice(2);
const agent = new Agent({ keepAlive: false });
const headers = { 'User-Agent': 'kube-probe/1.32', Accept: '*/*' };

function ask(path) {
  get({ host: '127.0.0.1', port: Number(port), path, headers, agent }, (response) => {
    const chunks = [];
    response.on('data', (chunk) => chunks.push(chunk));
    response.on('end', () => Buffer.concat(chunks).toString());
  });
}

for (const path of paths) setTimeout(() => setInterval(ask, 1_000, path), Math.random() * 1_000);
