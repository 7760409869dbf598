// pure
/**
 * The pod as the kubelet would have it after decoding: v1 defaults filled in, then what the file source sets (kubelet v1.32
 * pkg/apis/core/v1/defaults.go, config/common.go). The name stays as written and the UID is the instance's own (instance.ts).
 */
import { effectiveRequests } from './resources.ts';
import type {
  Container,
  DownwardAPIProjection,
  EnvVar,
  EnvVarSource,
  HTTPGetAction,
  LifecycleHandler,
  Pod,
  Probe,
  PullPolicy,
  Volume,
} from './v1.ts';
import { systemPriorities } from './validate.ts';

/** The pull policy of an image that names none: Always for `:latest`, spelled out or meant. Hash scheme 1 rests on it: it never changes. */
export function defaultPullPolicy(image: string): PullPolicy {
  const [named = '', digest] = image.split('@');
  const tag = /:([^/:]*)$/.exec(named)?.[1];
  return tag === 'latest' || (tag === undefined && digest === undefined) ? 'Always' : 'IfNotPresent';
}

/** All defaults of a decoded pod. An already defaulted pod comes back equal. */
export function defaultPod(pod: Pod, nodeName: string): Pod {
  const { spec, metadata } = pod;
  const hostNetwork = spec.hostNetwork === true;
  const one = (c: Container): Container => defaultContainer(c, hostNetwork);
  const named = spec.priorityClassName ?? '';
  const priority = spec.priority ?? (Object.hasOwn(systemPriorities, named) ? systemPriorities[named] : undefined);
  const tolerated = spec.tolerations?.some((t) => t.operator === 'Exists' && t.effect === 'NoExecute' && (t.key ?? '') === '');
  return {
    ...pod,
    metadata: { ...metadata, namespace: metadata.namespace || 'default' },
    spec: {
      ...spec,
      ...(spec.volumes !== undefined && { volumes: spec.volumes.map(defaultVolume) }),
      ...(spec.initContainers !== undefined && { initContainers: spec.initContainers.map(one) }),
      containers: spec.containers.map(one),
      restartPolicy: spec.restartPolicy || 'Always',
      terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
      dnsPolicy: spec.dnsPolicy || 'ClusterFirst',
      nodeName,
      securityContext: spec.securityContext ?? {},
      schedulerName: spec.schedulerName || 'default-scheduler',
      tolerations: tolerated ? (spec.tolerations ?? []) : [...(spec.tolerations ?? []), { operator: 'Exists', effect: 'NoExecute' }],
      ...(priority !== undefined && { priority }),
      enableServiceLinks: spec.enableServiceLinks ?? true,
    },
  };
}

/** A volume that names no source is an emptyDir. */
const defaultVolume = (v: Volume): Volume => ({
  ...v,
  ...(v.hostPath !== undefined && { hostPath: { ...v.hostPath, type: v.hostPath.type ?? '' } }),
  ...(v.image !== undefined && {
    image: { ...v.image, pullPolicy: v.image.pullPolicy || defaultPullPolicy(v.image.reference ?? '') },
  }),
  ...(v.configMap !== undefined && { configMap: withMode(v.configMap) }),
  ...(v.secret !== undefined && { secret: withMode(v.secret) }),
  ...(v.downwardAPI !== undefined && { downwardAPI: withMode(defaultDownward(v.downwardAPI)) }),
  ...(v.projected !== undefined && {
    projected: withMode({
      ...v.projected,
      sources: v.projected.sources.map((s) => ({ ...s, ...(s.downwardAPI && { downwardAPI: defaultDownward(s.downwardAPI) }) })),
    }),
  }),
  ...(Object.keys(v).length === 1 && { emptyDir: {} }),
});

const withMode = <T extends { readonly defaultMode?: number }>(source: T): T => ({ ...source, defaultMode: source.defaultMode ?? 0o644 });

const defaultDownward = <T extends DownwardAPIProjection>(source: T): T => ({
  ...source,
  ...(source.items !== undefined && { items: source.items.map((file) => ({ ...file, ...defaultRefs(file) })) }),
});

function defaultContainer(c: Container, hostNetwork: boolean): Container {
  const requests = effectiveRequests(c);
  return {
    ...c,
    ...(c.ports !== undefined && {
      ports: c.ports.map((port) => ({
        ...port,
        ...(hostNetwork && !port.hostPort && { hostPort: port.containerPort }),
        protocol: port.protocol || 'TCP',
      })),
    }),
    ...(c.env !== undefined && { env: c.env.map(defaultEnv) }),
    resources: { ...c.resources, ...(Object.keys(requests).length > 0 && { requests }) },
    ...defaultHandlers(c),
    terminationMessagePath: c.terminationMessagePath || '/dev/termination-log',
    terminationMessagePolicy: c.terminationMessagePolicy || 'File',
    imagePullPolicy: c.imagePullPolicy || defaultPullPolicy(c.image),
  };
}

function defaultEnv(e: EnvVar): EnvVar {
  const { fieldRef, resourceFieldRef } = e.valueFrom ?? {};
  if (fieldRef === undefined && resourceFieldRef === undefined) return e;
  return { ...e, valueFrom: { ...e.valueFrom, ...defaultRefs({ ...e.valueFrom }) } };
}

const defaultRefs = ({
  fieldRef,
  resourceFieldRef,
}: Pick<EnvVarSource, 'fieldRef' | 'resourceFieldRef'>): Pick<EnvVarSource, 'fieldRef' | 'resourceFieldRef'> => ({
  ...(fieldRef && { fieldRef: { ...fieldRef, apiVersion: fieldRef.apiVersion || 'v1' } }),
  ...(resourceFieldRef && { resourceFieldRef: { ...resourceFieldRef, divisor: resourceFieldRef.divisor ?? '0' } }),
});

function defaultHandlers({ livenessProbe, readinessProbe, startupProbe, lifecycle }: Container): Partial<Container> {
  const { postStart, preStop } = lifecycle ?? {};
  return {
    ...(livenessProbe && { livenessProbe: defaultProbe(livenessProbe) }),
    ...(readinessProbe && { readinessProbe: defaultProbe(readinessProbe) }),
    ...(startupProbe && { startupProbe: defaultProbe(startupProbe) }),
    ...(lifecycle && {
      lifecycle: { ...(postStart && { postStart: defaultHook(postStart) }), ...(preStop && { preStop: defaultHook(preStop) }) },
    }),
  };
}

/** 0 is as good as absent. */
const defaultProbe = (p: Probe): Probe => ({
  ...p,
  ...(p.httpGet && { httpGet: defaultGet(p.httpGet) }),
  ...(p.grpc && { grpc: { ...p.grpc, service: p.grpc.service ?? '' } }),
  timeoutSeconds: p.timeoutSeconds || 1,
  periodSeconds: p.periodSeconds || 10,
  successThreshold: p.successThreshold || 1,
  failureThreshold: p.failureThreshold || 3,
});

const defaultHook = (h: LifecycleHandler): LifecycleHandler => ({ ...h, ...(h.httpGet && { httpGet: defaultGet(h.httpGet) }) });

const defaultGet = (get: HTTPGetAction): HTTPGetAction => ({ ...get, path: get.path || '/', scheme: get.scheme || 'HTTP' });
