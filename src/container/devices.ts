// pure
/** What a container is given of the node's devices, between who decides it and who makes the container. */
import type { Device } from './runtime.ts';

export interface ContainerDevices {
  readonly devices: readonly Device[];
  /** Groups that may use the nodes, so that a process without root can. */
  readonly groups: readonly number[];
  /** Qualified names, `vendor.com/class=name`. */
  readonly cdiDevices: readonly string[];
  /** Written on the container: what it was made with, and what the runtime reads. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** A container's device that is not there any more, as its pod is told. */
export interface GoneDevice {
  readonly container: string;
  readonly deviceClass: string;
  /** As its class names it, and its node. */
  readonly paths: readonly string[];
}

/** What devices of a running container have been made with, on the container. */
export const devicesAnnotation = 'podsched.dev/devices';
