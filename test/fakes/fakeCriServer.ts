/** A FakeRuntime behind real gRPC on a Unix socket: what src/cri says on the wire comes back as words, and the answers as messages. */
import { existsSync, rmSync } from 'node:fs';
import { create, type DescMessage, type DescMethod, type DescService, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { ContainerId, SandboxId } from '../../src/container/words.ts';
import { labels } from '../../src/container/words.ts';
import { AnyContainerEventSchema, EnvelopeSchema, Events, TaskExitSchema } from '../../src/cri/gen/containerd_pb.ts';
import * as pb from '../../src/cri/gen/cri_pb.ts';
import * as wire from './criMessages.ts';
import type { FakeRuntime } from './fakeRuntime.ts';

type Handler = (request: never) => Promise<object>;
/** What one event of the runtime becomes on the wire. */
type Messages = (id: string, topic: string) => readonly object[];

export interface FakeCriServerOptions {
  readonly runtime: FakeRuntime;
  readonly socket: string;
  /** Whose event service answers. Default containerd's. */
  readonly events?: 'containerd' | 'cri' | 'none';
  /** RuntimeConfig as CRI 1.28 has it; default false, as in containerd 1.x: then the driver is in Status(verbose). */
  readonly runtimeConfig?: boolean;
}

const grpcCodes: Readonly<Record<RuntimeError['code'], grpc.status>> = {
  notFound: grpc.status.NOT_FOUND,
  alreadyExists: grpc.status.ALREADY_EXISTS,
  unavailable: grpc.status.UNAVAILABLE,
  deadlineExceeded: grpc.status.DEADLINE_EXCEEDED,
  unimplemented: grpc.status.UNIMPLEMENTED,
  unknown: grpc.status.UNKNOWN,
};

export class FakeCriServer {
  /** Requests as they came over the wire, by method name. */
  readonly requests: { readonly method: string; readonly message: unknown }[] = [];
  /** Event streams open now. */
  streams = 0;
  /** While set, every call is refused with these words as UNKNOWN: containerd between its socket and its CRI service. */
  notReady: string | undefined;
  #server: grpc.Server | undefined;
  #open = new Set<grpc.ServerWritableStream<unknown, unknown>>();

  constructor(private readonly o: FakeCriServerOptions) {}

  async start(): Promise<void> {
    const server = new grpc.Server();
    this.#add(server, pb.RuntimeService, this.#runtimeHandlers());
    this.#add(server, pb.ImageService, this.#imageHandlers());
    const { events = 'containerd' } = this.o;
    if (events === 'containerd') this.#addStream(server, Events, Events.method.subscribe, envelopes);
    if (existsSync(this.o.socket)) rmSync(this.o.socket);
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.o.socket}`, grpc.ServerCredentials.createInsecure(), (e) => (e === null ? resolve() : reject(e)));
    });
    this.#server = server;
  }

  /** The daemon dies: connections drop, the socket file is gone (or stays behind, stale). */
  stop(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    this.#open.clear();
    this.streams = 0;
  }

  /** Ends every event stream with an error; the connection stays. */
  breakStreams(): void {
    for (const call of this.#open) call.emit('error', { code: grpc.status.UNAVAILABLE, details: 'broken' });
  }

  #runtimeHandlers(): Record<string, Handler> {
    const r = this.o.runtime;
    const handlers: Record<string, Handler> = {
      version: async () => ({ version: '0.1.0', runtimeApiVersion: 'v1', ...(await r.version()) }),
      status: async ({ verbose }: pb.StatusRequest) => ({
        status: { conditions: await r.status() },
        runtimeHandlers: (await r.handlers()).map((h) => ({
          name: h.name,
          features: { recursiveReadOnlyMounts: h.recursiveReadOnlyMounts },
        })),
        info:
          verbose && this.o.runtimeConfig !== true ? { config: wire.verboseConfig(await r.cgroupDriver(), await r.sandboxImage()) } : {},
      }),
      runPodSandbox: async (q: pb.RunPodSandboxRequest) => ({
        podSandboxId: await r.runSandbox(wire.sandboxConfig(q.config), q.runtimeHandler),
      }),
      stopPodSandbox: (q: pb.StopPodSandboxRequest) => r.stopSandbox(q.podSandboxId as SandboxId).then(empty),
      removePodSandbox: (q: pb.RemovePodSandboxRequest) => r.removeSandbox(q.podSandboxId as SandboxId).then(empty),
      podSandboxStatus: async (q: pb.PodSandboxStatusRequest) => ({
        status: wire.sandboxStatus(await r.sandboxStatus(q.podSandboxId as SandboxId)),
      }),
      listPodSandbox: async ({ filter }: pb.ListPodSandboxRequest) => ({
        items: (await r.listSandboxes(wire.uidOf(filter?.labelSelector[labels.podUid]))).map(wire.sandbox),
      }),
      createContainer: async (q: pb.CreateContainerRequest) => ({
        containerId: await r.createContainer(
          q.podSandboxId as SandboxId,
          wire.containerConfig(q.config),
          wire.sandboxConfig(q.sandboxConfig),
        ),
      }),
      startContainer: (q: pb.StartContainerRequest) => r.startContainer(q.containerId as ContainerId).then(empty),
      stopContainer: (q: pb.StopContainerRequest) => r.stopContainer(q.containerId as ContainerId, Number(q.timeout)).then(empty),
      removeContainer: (q: pb.RemoveContainerRequest) => r.removeContainer(q.containerId as ContainerId).then(empty),
      updateContainerResources: (q: pb.UpdateContainerResourcesRequest) =>
        r.updateContainerResources(q.containerId as ContainerId, wire.resources(q.linux)).then(empty),
      listContainers: async ({ filter }: pb.ListContainersRequest) => ({
        containers: (await r.listContainers(wire.uidOf(filter?.labelSelector[labels.podUid])))
          .filter((c) => !filter?.id || c.id === filter.id)
          .map(wire.container),
      }),
      listContainerStats: async ({ filter }: pb.ListContainerStatsRequest) => ({
        stats: (await r.listContainerStats(wire.uidOf(filter?.labelSelector[labels.podUid]))).map(wire.containerStats),
      }),
      execSync: (q: pb.ExecSyncRequest) => r.execSync(q.containerId as ContainerId, q.cmd, Number(q.timeout)).then((x) => ({ ...x })),
      reopenContainerLog: (q: pb.ReopenContainerLogRequest) => r.reopenLog(q.containerId as ContainerId).then(empty),
      containerStatus: async (q: pb.ContainerStatusRequest) => ({
        status: wire.containerStatus(await r.containerStatus(q.containerId as ContainerId)),
      }),
    };
    if (this.o.runtimeConfig === true) {
      handlers.runtimeConfig = async () => {
        const driver = await r.cgroupDriver();
        return driver === undefined
          ? {}
          : { linux: { cgroupDriver: driver === 'systemd' ? pb.CgroupDriver.SYSTEMD : pb.CgroupDriver.CGROUPFS } };
      };
    }
    return handlers;
  }

  #imageHandlers(): Record<string, Handler> {
    const r = this.o.runtime;
    return {
      listImages: async () => ({ images: (await r.listImages()).map(wire.imageMessage) }),
      removeImage: async (q: pb.RemoveImageRequest) => {
        await r.removeImage(q.image?.image ?? '');
        return {};
      },
      imageFsInfo: async () => ({
        imageFilesystems: (await r.imageFilesystems()).map((f) => ({
          fsId: { mountpoint: f.mountpoint },
          usedBytes: { value: BigInt(f.usedBytes) },
          ...(f.inodesUsed !== undefined && { inodesUsed: { value: BigInt(f.inodesUsed) } }),
        })),
      }),
      imageStatus: async (q: pb.ImageStatusRequest) => wire.image(await r.imageStatus(q.image?.image ?? '')),
      pullImage: async (q: pb.PullImageRequest) => ({ imageRef: await r.pullImage(q.image?.image ?? '') }),
    };
  }

  #add(server: grpc.Server, service: DescService, handlers: Record<string, Handler>): void {
    const methods = service.methods.filter((m) => handlers[m.localName] !== undefined);
    const definition = Object.fromEntries(methods.map((m) => [m.localName, methodDefinition(service, m)]));
    const implementation: grpc.UntypedServiceImplementation = {};
    for (const m of methods) {
      const handler = handlers[m.localName];
      const unary: grpc.handleUnaryCall<unknown, unknown> = (call, answer) => {
        this.requests.push({ method: m.name, message: call.request });
        if (this.notReady !== undefined) return answer({ code: grpc.status.UNKNOWN, details: this.notReady });
        handler?.(call.request as never).then(
          (a) => answer(null, create(m.output, a as Record<string, unknown>)),
          (e) => answer(asStatus(e)),
        );
      };
      implementation[m.localName] = unary;
    }
    if (service === pb.RuntimeService && this.o.events === 'cri') {
      const m = pb.RuntimeService.method.getContainerEvents;
      definition[m.localName] = methodDefinition(service, m);
      implementation[m.localName] = this.#stream((containerId, topic) => {
        const type = { create: 0, start: 1, exit: 2, delete: 3 }[topic as 'start'];
        return type === undefined ? [] : [create(m.output, { containerId, containerEventType: type })];
      });
    }
    server.addService(definition, implementation);
  }

  #addStream(server: grpc.Server, service: DescService, m: DescMethod, messages: Messages): void {
    server.addService({ [m.localName]: methodDefinition(service, m) }, { [m.localName]: this.#stream(messages) });
  }

  #stream(messages: Messages): grpc.handleServerStreamingCall<unknown, unknown> {
    return (call) => {
      const over = new AbortController();
      this.streams += 1;
      this.#open.add(call);
      const end = () => {
        if (this.#open.delete(call)) this.streams -= 1;
        over.abort();
      };
      call.on('cancelled', end);
      call.on('error', end);
      const send = (e: { containerId: string; topic: string }) => {
        for (const m of messages(e.containerId, e.topic)) call.write(m);
      };
      this.o.runtime.events(send, () => undefined, over.signal).catch((e) => call.emit('error', asStatus(e)));
    };
  }
}

/** As containerd packs it; an exec's exit comes beside each real one. */
const envelopes: Messages = (containerId, topic) => {
  const packed = (path: string, schema: DescMessage, fields: Record<string, unknown>) =>
    create(EnvelopeSchema, {
      namespace: 'k8s.io',
      topic: path,
      event: { typeUrl: schema.typeName, value: toBinary(schema, create(schema, fields)) },
    });
  const exit = (id: string) => packed('/tasks/exit', TaskExitSchema, { containerId, id });
  switch (topic) {
    case 'exit':
      return [exit('an-exec'), exit(containerId)];
    case 'start':
    case 'oom':
      return [packed(`/tasks/${topic}`, AnyContainerEventSchema, { containerId })];
    case 'delete':
      return [packed('/containers/delete', AnyContainerEventSchema, { containerId })];
    default:
      return [];
  }
};

const empty = (): object => ({});

const asStatus = (e: unknown): { code: grpc.status; details: string } => {
  const code = e instanceof RuntimeError ? grpcCodes[e.code] : grpc.status.UNKNOWN;
  return { code, details: `rpc error: code = ${grpc.status[code]} desc = ${e instanceof Error ? e.message : String(e)}` };
};

function methodDefinition(service: DescService, m: DescMethod): grpc.MethodDefinition<unknown, unknown> {
  const bytes = (schema: DescMessage) => (value: unknown) => Buffer.from(toBinary(schema, value as MessageShape<DescMessage>));
  return {
    path: `/${service.typeName}/${m.name}`,
    requestStream: false,
    responseStream: m.methodKind === 'server_streaming',
    requestSerialize: bytes(m.input),
    requestDeserialize: (b) => fromBinary(m.input, b),
    responseSerialize: bytes(m.output),
    responseDeserialize: (b) => fromBinary(m.output, b),
  };
}
