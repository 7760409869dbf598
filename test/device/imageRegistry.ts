/**
 * A registry of a test's own: Debian's docker-registry on a loopback port with its data in a temporary folder, plain or with a name and a
 * password, and a proxy before it that does what bad registries do. Tests pull through the proxy (`host`) and fill it behind its back.
 * It stops only what it started.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { busybox1, type ImageRecipe, imageArchive } from './images.ts';
import { freePort, mustRun, run, sleep, startDaemon, until } from './process.ts';

/** Which requests: of manifests (also HEAD), of blobs, or every one, the first look at /v2/ too. */
export type RequestKind = 'manifest' | 'blob' | 'other';

/** What the proxy does instead of passing an answer on. `on` left out: to every request. */
export type Fault =
  | {
      readonly does: 'answers';
      readonly status: number;
      readonly on?: RequestKind;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Bytes per second over all connections. */
  | { readonly does: 'slow'; readonly bytesPerSecond: number; readonly on?: RequestKind }
  /** Each answer ends with a broken connection after so many bytes. containerd goes on from there, as long as anything comes: 0 breaks its pull. */
  | { readonly does: 'breaksOff'; readonly afterBytes: number; readonly on?: RequestKind }
  /** Takes the request and says nothing, or nothing more after so many bytes. containerd shows whole MiB of each layer only. */
  | { readonly does: 'hangs'; readonly afterBytes?: number; readonly on?: RequestKind };

/** As Docker Hub says it. */
export const tooManyRequests = (retryAfterSeconds?: number): Fault => ({
  does: 'answers',
  status: 429,
  body: '{"errors":[{"code":"TOOMANYREQUESTS","message":"You have reached your pull rate limit."}]}',
  ...(retryAfterSeconds !== undefined && { headers: { 'Retry-After': String(retryAfterSeconds) } }),
});

export interface RegistryRequest {
  readonly kind: RequestKind;
  readonly method: string;
  readonly path: string;
  /** Milliseconds of performance.now(). */
  readonly at: number;
  /** With an Authorization header. */
  readonly authorized: boolean;
  status?: number;
  /** Bytes of the body that went out. */
  bytes: number;
  over: boolean;
  /** The client went away before the answer was whole. */
  closedEarly: boolean;
}

export interface PushOptions {
  /** Repository and tag there; default `busybox:1`, the recipe's name without its host. */
  readonly name?: string;
  /** A layer more, of so many bytes that nothing compresses. */
  readonly extraBytes?: number;
  /** What the image says it was built for, in Go's words; default: this machine. */
  readonly architecture?: string;
  readonly variant?: string;
}

export interface ImageRegistry {
  /** `127.0.0.1:PORT`, the proxy. */
  readonly host: string;
  /** With `htpasswd`: what it wants to hear. */
  readonly user: string;
  readonly password: string;
  /** Every request that came, oldest first. */
  readonly requests: readonly RegistryRequest[];
  /** Requests of this kind so far. */
  count(kind: RequestKind): number;
  forgetRequests(): void;
  /** Connections that are open now. */
  connections(): number;
  /** undefined: as good as new. Answers under way keep the fault they began with, but a slow one follows the new rate. */
  setFault(fault: Fault | undefined): void;
  /** True: nobody listens there any more and every connection breaks; false: it is back under the same port. */
  setGone(gone: boolean): Promise<void>;
  /** Puts an image there, by the back door; resolves with its full name (`127.0.0.1:5000/busybox:1`). */
  push(recipe?: ImageRecipe, o?: PushOptions): Promise<string>;
  /** The digest of a name that was pushed: `sha256:…`. */
  digest(name: string): Promise<string>;
  stop(): Promise<void>;
}

export interface RegistryOptions {
  /** Asks for `user` and `password` (HTTP basic). */
  readonly htpasswd?: boolean;
  /** https with a certificate that nobody knows, on an address of this machine that is no loopback (there containerd speaks plain http). */
  readonly wrongCertificate?: boolean;
}

export const registryUser = 'pi';
export const registryPassword = 'canary-geheim-7c1f';

/** This machine's first address that is no loopback. */
function outerAddress(): string {
  const found = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find((a) => a.family === 'IPv4' && !a.internal);
  if (found === undefined) throw new Error('this machine has no address beside the loopback');
  return found.address;
}

/** glibc's crypt knows bcrypt; the cost is the least there is. */
const bcrypt = async (password: string): Promise<string> =>
  (await mustRun('perl', ['-e', 'print crypt($ARGV[0], $ARGV[1])', password, '$2b$04$abcdefghijklmnopqrstuu'])).trim();

export async function startImageRegistry(o: RegistryOptions = {}): Promise<ImageRegistry> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-registry-'));
  const upstream = await freePort();
  const storage = join(dir, 'data');
  mkdirSync(storage);
  const auth = o.htpasswd === true ? `auth:\n  htpasswd:\n    realm: test\n    path: ${join(dir, 'htpasswd')}\n` : '';
  if (auth !== '') writeFileSync(join(dir, 'htpasswd'), `${registryUser}:${await bcrypt(registryPassword)}\n`);
  writeFileSync(
    join(dir, 'config.yml'),
    `version: 0.1\nlog:\n  level: warn\nstorage:\n  filesystem:\n    rootdirectory: ${storage}\nhttp:\n  addr: 127.0.0.1:${upstream}\n${auth}`,
  );
  const logFile = join(dir, 'log');
  // its environment could change its configuration
  const daemon = startDaemon('docker-registry', ['serve', join(dir, 'config.yml')], { logFile, env: { PATH: process.env.PATH ?? '' } });
  const closeAll = async () => {
    await daemon.end();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const tls = o.wrongCertificate === true ? await selfSigned(dir, outerAddress()) : undefined;
    const address = tls === undefined ? '127.0.0.1' : outerAddress();
    await until('docker-registry to serve', 60_000, () => {
      if (!daemon.running()) throw new Error(`docker-registry ended at once:\n${readFileSync(logFile, 'utf8').slice(-2000)}`);
      return answers(upstream);
    });
    const proxy = new FaultyProxy(upstream, address, tls);
    await proxy.listen();
    return {
      host: `${address}:${proxy.port}`,
      user: registryUser,
      password: registryPassword,
      requests: proxy.requests,
      count: (kind) => proxy.requests.filter((r) => r.kind === kind).length,
      forgetRequests: () => proxy.requests.splice(0),
      connections: () => proxy.sockets.size,
      setFault: (fault) => {
        proxy.fault = fault;
      },
      setGone: (gone) => (gone ? proxy.close() : proxy.listen()),
      push: async (recipe = busybox1, options = {}) => {
        const name = options.name ?? recipe.ref.slice(recipe.ref.indexOf('/') + 1);
        await push(dir, upstream, recipe, name, options, auth !== '');
        return `${address}:${proxy.port}/${name}`;
      },
      digest: async (name) => {
        const bare = name.startsWith(`${address}:${proxy.port}/`) ? name.slice(name.indexOf('/') + 1) : name;
        const [repository = '', tag = 'latest'] = bare.split(':');
        const basic = Buffer.from(`${registryUser}:${registryPassword}`).toString('base64');
        const Accept = 'application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json';
        const url = `http://127.0.0.1:${upstream}/v2/${repository}/manifests/${tag}`;
        const answer = await fetch(url, { headers: { Accept, ...(auth !== '' && { Authorization: `Basic ${basic}` }) } });
        if (!answer.ok) throw new Error(`the registry answered ${answer.status} when asked for ${name}`);
        const body = Buffer.from(await answer.arrayBuffer());
        return `sha256:${createHash('sha256').update(body).digest('hex')}`;
      },
      stop: async () => {
        await proxy.close();
        await closeAll();
      },
    };
  } catch (e) {
    await closeAll();
    throw e;
  }
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const ask = request({ port, host: '127.0.0.1', path: '/v2/' }, (res) => {
      res.resume();
      resolve(true);
    });
    ask.once('error', () => resolve(false));
    ask.end();
  });

async function selfSigned(dir: string, address: string): Promise<{ readonly key: Buffer; readonly cert: Buffer }> {
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const how = [
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '1',
    '-subj',
    '/CN=nobody.example',
    '-addext',
    `subjectAltName=IP:${address}`,
  ];
  await mustRun('openssl', ['req', ...how, '-keyout', key, '-out', cert]);
  return { key: readFileSync(key), cert: readFileSync(cert) };
}

/** An archive of the test bed, altered, and skopeo to carry it. */
async function push(dir: string, port: number, recipe: ImageRecipe, name: string, o: PushOptions, auth: boolean): Promise<void> {
  const work = mkdtempSync(join(dir, 'push-'));
  try {
    const archive = await imageArchive(recipe);
    const altered = o.extraBytes !== undefined || o.architecture !== undefined || o.variant !== undefined;
    const source = altered ? await alter(work, archive, o) : archive;
    const credentials = auth ? ['--dest-creds', `${registryUser}:${registryPassword}`] : [];
    const to = `docker://127.0.0.1:${port}/${name}`;
    const args = ['--insecure-policy', '--tmpdir', work, 'copy', '--quiet', '--dest-tls-verify=false', ...credentials];
    const { code, stderr } = await run('skopeo', [...args, `docker-archive:${source}`, to]);
    if (code !== 0) throw new Error(`skopeo ended with ${code}: ${stderr.trim()}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Another platform in its configuration, a layer of noise beside its own. */
async function alter(work: string, archive: string, o: PushOptions): Promise<string> {
  const content = join(work, 'content');
  mkdirSync(content);
  await mustRun('tar', ['-C', content, '-xf', archive]);
  const [manifest] = JSON.parse(readFileSync(join(content, 'manifest.json'), 'utf8')) as [{ Config: string; Layers: string[] }];
  const config = JSON.parse(readFileSync(join(content, manifest.Config), 'utf8')) as {
    architecture: string;
    variant?: string;
    rootfs: { diff_ids: string[] };
    history: object[];
  };
  if (o.architecture !== undefined) config.architecture = o.architecture;
  if (o.variant !== undefined) config.variant = o.variant;
  if (o.extraBytes !== undefined) {
    mkdirSync(join(work, 'noise/var'), { recursive: true });
    writeFileSync(join(work, 'noise/var/noise'), randomBytes(o.extraBytes));
    await mustRun('tar', ['-C', join(work, 'noise'), '-cf', join(content, 'noise.tar'), 'var']);
    const sum = createHash('sha256')
      .update(readFileSync(join(content, 'noise.tar')))
      .digest('hex');
    config.rootfs.diff_ids.push(`sha256:${sum}`);
    config.history.push({ created: '1970-01-01T00:00:00Z', created_by: 'podsched test bed: noise' });
    manifest.Layers.push('noise.tar');
  }
  const text = JSON.stringify(config);
  manifest.Config = `${createHash('sha256').update(text).digest('hex')}.json`;
  writeFileSync(join(content, manifest.Config), text);
  writeFileSync(join(content, 'manifest.json'), JSON.stringify([manifest]));
  const out = join(work, 'image.tar');
  await mustRun('tar', ['-C', content, '-cf', out, ...readdirSync(content)]);
  if (statSync(out).size === 0) throw new Error('an empty archive');
  return out;
}

const kindOf = (path: string): RequestKind => (/\/manifests\//.test(path) ? 'manifest' : /\/blobs\//.test(path) ? 'blob' : 'other');

/** Until more may be written, or nobody listens any more. */
const drained = (res: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      res.off('drain', done).off('close', done);
      resolve();
    };
    res.on('drain', done).on('close', done);
  });

/** Passes everything on to the registry, and does the fault that is set. */
class FaultyProxy {
  readonly requests: RegistryRequest[] = [];
  readonly sockets = new Set<Socket>();
  fault: Fault | undefined;
  port = 0;
  #server: Server | undefined;
  /** When the next byte may go out, in milliseconds of performance.now(). */
  #free = 0;

  constructor(
    private readonly upstream: number,
    private readonly address: string,
    private readonly tls: { readonly key: Buffer; readonly cert: Buffer } | undefined,
  ) {}

  async listen(): Promise<void> {
    if (this.#server !== undefined) return;
    const answer = (req: IncomingMessage, res: ServerResponse) => this.#answer(req, res);
    const server = this.tls === undefined ? createServer(answer) : createTlsServer(this.tls, answer);
    server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
      socket.on('error', () => {}); // a client that goes away is what tests do
    });
    server.on('tlsClientError', () => {});
    // it comes back under the same number after it was gone: nobody may get that meanwhile
    if (this.port === 0) this.port = await freePort();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, this.address, resolve);
    });
    this.#server = server;
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  #answer(req: IncomingMessage, res: ServerResponse): void {
    const path = req.url ?? '/';
    const entry: RegistryRequest = {
      kind: kindOf(path),
      method: req.method ?? '',
      path,
      at: performance.now(),
      authorized: req.headers.authorization !== undefined,
      bytes: 0,
      over: false,
      closedEarly: false,
    };
    this.requests.push(entry);
    res.on('close', () => {
      entry.over = true;
      entry.closedEarly = !res.writableFinished;
    });
    res.on('error', () => {});
    const { fault } = this;
    const faulty = fault !== undefined && (fault.on === undefined || fault.on === entry.kind) ? fault : undefined;
    if (faulty?.does === 'answers') {
      entry.status = faulty.status;
      res.writeHead(faulty.status, { 'Content-Type': 'application/json', ...faulty.headers });
      res.end(faulty.body ?? '{}');
      return;
    }
    if (faulty?.does === 'hangs' && faulty.afterBytes === undefined) return;
    const headers = { ...req.headers };
    const forward = request({ port: this.upstream, host: '127.0.0.1', method: req.method, path, headers }, (from) => {
      entry.status = from.statusCode ?? 0;
      res.writeHead(from.statusCode ?? 502, from.headers);
      this.#carry(from, res, entry, faulty).catch(() => res.destroy());
    });
    forward.on('error', () => res.destroy());
    res.on('close', () => forward.destroy());
    req.pipe(forward);
  }

  async #carry(from: IncomingMessage, res: ServerResponse, entry: RegistryRequest, fault: Fault | undefined): Promise<void> {
    res.flushHeaders();
    for await (const part of from as AsyncIterable<Buffer>) {
      let rest = part;
      while (rest.length > 0) {
        let piece = rest;
        if (fault?.does === 'slow') piece = rest.subarray(0, Math.max(1, Math.floor(this.#rate(fault) / 20)));
        if ((fault?.does === 'breaksOff' || fault?.does === 'hangs') && fault.afterBytes !== undefined)
          piece = rest.subarray(0, fault.afterBytes - entry.bytes);
        rest = rest.subarray(piece.length);
        if (piece.length > 0) {
          if (fault?.does === 'slow') await this.#turn(piece.length, fault);
          if (res.destroyed) return;
          if (!res.write(piece)) await drained(res);
          entry.bytes += piece.length;
        }
        if (fault?.does === 'breaksOff' && entry.bytes >= fault.afterBytes) {
          await sleep(50); // what was written goes out first
          res.destroy();
          return;
        }
        if (fault?.does === 'hangs' && entry.bytes >= (fault.afterBytes ?? 0)) return;
      }
    }
    res.end();
  }

  #rate(fault: { readonly bytesPerSecond: number }): number {
    return this.fault === undefined ? 1e9 : this.fault.does === 'slow' ? this.fault.bytesPerSecond : fault.bytesPerSecond;
  }

  /** Waits until so many bytes may go, behind those of other connections. */
  async #turn(bytes: number, fault: { readonly bytesPerSecond: number }): Promise<void> {
    const now = performance.now();
    this.#free = Math.max(this.#free, now) + (bytes * 1000) / this.#rate(fault);
    await sleep(this.#free - now);
  }
}
