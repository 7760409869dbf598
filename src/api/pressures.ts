// pure
/** The three pressures of a node, and the words of their conditions: eviction judges them, the node's status tells them. */

export type PressureType = 'MemoryPressure' | 'DiskPressure' | 'PIDPressure';
export const pressureTypes: readonly PressureType[] = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];

/** Reason and message of the node's condition (facts 17.2). */
export function conditionWords(type: PressureType, pressed: boolean): { readonly reason: string; readonly message: string } {
  switch (type) {
    case 'MemoryPressure':
      return pressed
        ? { reason: 'KubeletHasInsufficientMemory', message: 'kubelet has insufficient memory available' }
        : { reason: 'KubeletHasSufficientMemory', message: 'kubelet has sufficient memory available' };
    case 'DiskPressure':
      return pressed
        ? { reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' }
        : { reason: 'KubeletHasNoDiskPressure', message: 'kubelet has no disk pressure' };
    case 'PIDPressure':
      return pressed
        ? { reason: 'KubeletHasInsufficientPID', message: 'kubelet has insufficient PID available' }
        : { reason: 'KubeletHasSufficientPID', message: 'kubelet has sufficient PID available' };
  }
}
