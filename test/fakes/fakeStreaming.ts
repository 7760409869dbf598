/**
 * The streaming server of a runtime: sessions by HTTP upgrade to SPDY/3.1, read with a frame reader and an inflater of its own. The test says
 * what the process does.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { constants, inflateSync } from 'node:zlib';

export interface FakeProcess {
  /** The path that was asked for. */
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  /** In the order in which they were opened. */
  readonly streams: readonly string[];
  readonly socket: Socket;
  /** What came on standard input so far. */
  stdin(): string;
  readonly stdinEnded: Promise<void>;
  /** Sizes of the terminal as they came, as JSON text. */
  readonly sizes: readonly string[];
  onStdin(listener: (text: string) => void): void;
  /** Resolves when more may be written. */
  write(stream: 'stdout' | 'stderr', data: string | Uint8Array): Promise<void>;
  ping(id: number): void;
  readonly pongs: readonly number[];
  /** Ends as the runtimes do: the status on the error stream, then the connection. */
  end(status: object | undefined): void;
}

export const success = { metadata: {}, status: 'Success' };
export const exited = (code: number) => ({
  metadata: {},
  status: 'Failure',
  reason: 'NonZeroExitCode',
  message: `command terminated with non-zero exit code: ${code}`,
  details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
});
export const failed = (message: string) => ({ metadata: {}, status: 'Failure', reason: 'InternalError', message, code: 500 });

export interface FakeStreaming {
  readonly port: number;
  readonly sessions: readonly FakeProcess[];
  /** Every upgrade that was asked for. */
  readonly upgrades: readonly IncomingMessage[];
  /** Connections open now. */
  open(): number;
  close(): Promise<void>;
}

const frame = (head: number, flags: number, body: Uint8Array): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(head >>> 0, 0);
  bytes.writeUInt32BE(body.length, 4);
  bytes[4] = flags;
  return Buffer.concat([bytes, body]);
};

/** `run` is called when every stream that the query asks for is open. `refuse`: the answer to the upgrade instead. */
export async function startFakeStreaming(
  run: (process: FakeProcess) => void | Promise<void>,
  o: { readonly refuse?: { readonly code: number; readonly text: string } } = {},
): Promise<FakeStreaming> {
  const sessions: FakeProcess[] = [];
  const upgrades: IncomingMessage[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((_, response) => response.writeHead(400).end('no upgrade'));
  server.on('upgrade', (request, socket: Socket) => {
    sockets.add(socket);
    upgrades.push(request);
    // half of a session is none, as in Go's servers
    socket
      .on('error', () => {})
      .on('end', () => socket.end())
      .on('close', () => sockets.delete(socket));
    if (o.refuse !== undefined) {
      socket.end(`HTTP/1.1 ${o.refuse.code} No\r\nContent-Length: ${o.refuse.text.length}\r\n\r\n${o.refuse.text}`);
      return;
    }
    const protocol = request.headers['x-stream-protocol-version'];
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
    );
    serve(request, socket, (p) => {
      sessions.push(p);
      void run(p);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    sessions,
    upgrades,
    open: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function serve(request: IncomingMessage, socket: Socket, ready: (p: FakeProcess) => void): void {
  const query = new URL(request.url ?? '', 'http://x').searchParams;
  const wanted = 1 + ['stdin', 'stdout', 'stderr', 'tty'].filter((name) => query.get(name) === 'true').length;
  const opened = new Map<number, string>();
  const stdin: Buffer[] = [];
  const sizes: string[] = [];
  const pongs: number[] = [];
  const listeners: ((text: string) => void)[] = [];
  let blocks = Buffer.alloc(0);
  let inflated = 0;
  let endStdin = (): void => {};
  const stdinEnded = new Promise<void>((resolve) => {
    endStdin = resolve;
  });
  const idOf = (name: string): number => [...opened].find(([, n]) => n === name)?.[0] ?? 0;

  const headers = (block: Buffer): Record<string, string> => {
    blocks = Buffer.concat([blocks, block]);
    const all = inflateSync(blocks, { finishFlush: constants.Z_SYNC_FLUSH });
    const bytes = all.subarray(inflated);
    inflated = all.length;
    let at = 4;
    const text = (): string => {
      const length = bytes.readUInt32BE(at);
      at += 4 + length;
      return bytes.toString('utf8', at - length, at);
    };
    return Object.fromEntries(Array.from({ length: bytes.readUInt32BE(0) }, () => [text(), text()]));
  };

  let held = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    while (held.length >= 8) {
      const length = held.readUIntBE(5, 3);
      if (held.length < 8 + length) return;
      const word = held.readUInt32BE(0);
      const last = ((held[4] ?? 0) & 1) === 1;
      const body = Buffer.from(held.subarray(8, 8 + length));
      held = held.subarray(8 + length);
      if (word === 0x8003_0001) {
        opened.set(body.readUInt32BE(0), headers(body.subarray(10)).streamtype ?? '');
        if (opened.size === wanted) ready(process);
      } else if (word === 0x8003_0006) pongs.push(body.readUInt32BE(0));
      else if (opened.get(word) === 'stdin') {
        if (body.length > 0) stdin.push(body);
        for (const listener of listeners) listener(body.toString());
        if (last) endStdin();
      } else if (opened.get(word) === 'resize') sizes.push(body.toString().trim());
    }
  });

  const process: FakeProcess = {
    url: request.url ?? '',
    headers: request.headers,
    get streams() {
      return [...opened.values()];
    },
    socket,
    stdin: () => Buffer.concat(stdin).toString(),
    stdinEnded,
    sizes,
    onStdin: (listener) => listeners.push(listener),
    write: async (stream, data) => {
      if (!socket.write(frame(idOf(stream), 0, Buffer.from(data)))) await new Promise((resolve) => socket.once('drain', resolve));
    },
    ping: (id) => {
      const body = Buffer.alloc(4);
      body.writeUInt32BE(id);
      socket.write(frame(0x8003_0006, 0, body));
    },
    pongs,
    end: (status) => {
      const text = status === undefined ? '' : JSON.stringify(status);
      // in two parts, as a writer may
      socket.write(frame(idOf('error'), 0, Buffer.from(text.slice(0, 7))));
      socket.write(frame(idOf('error'), 0, Buffer.from(text.slice(7))));
      socket.end(frame(idOf('error'), 1, Buffer.alloc(0)));
    },
  };
}
