/** cgroup-ts: Linux cgroup v2 from Node. See README.md for what is where. */
export { CgroupfsDriver, type CgroupfsDriverOptions } from './cgroupfsDriver.ts';
export type { Controller, Limit } from './controller.ts';
export {
  type CpuMax,
  type CpuResources,
  type CpuStat,
  cpu,
  defaultPeriodUsec,
  parseCpuMax,
  printCpuMax,
} from './cpu.ts';
export { type CpusetResources, type CpusetStat, cpuset } from './cpuset.ts';
export {
  commonControllers,
  type Detection,
  type DetectOptions,
  detect,
  type MissingController,
  type Mode,
  type NotDelegated,
} from './detect.ts';
export type { CgroupName, Driver } from './driver.ts';
export { asCgroupError, CgroupError, type CgroupErrorInit, codeOf } from './error.ts';
export { type Counters, type EventChange, type WatchOptions, watchCgroupEvents, watchEvents, watchMemoryEvents } from './events.ts';
export { type CgroupFs, kernelFs } from './files.ts';
export { type EnableResult, Hierarchy, type HierarchyOptions, type Refusal, type WaitOptions } from './hierarchy.ts';
export { type HugetlbPages, type HugetlbResources, type HugetlbStat, hugePageSize, hugePageSizes, hugetlb } from './hugetlb.ts';
export { type IoMax, type IoResources, type IoStat, io, parseIoMax } from './io.ts';
export {
  type MemoryEvents,
  type MemoryResources,
  type MemoryStat,
  memory,
  memoryUsage,
  parseMemoryEvents,
  workingSet,
} from './memory.ts';
export { type MiscResources, type MiscStat, misc } from './misc.ts';
export { type Mount, parseMountinfo } from './mountinfo.ts';
export { parseFlatKeyed, parseLimit, parseLimits, parseList, parseNestedKeyed, parsePids, printList } from './parse.ts';
export { type PidsResources, type PidsStat, pids } from './pids.ts';
export { PressureMonitor, type PressureMonitorOptions, type PressureReading, type Thresholds } from './pressureMonitor.ts';
export {
  type Pressure,
  type PressureLine,
  type PressureResource,
  type Pressures,
  parsePressure,
  pressures,
  pressureWords,
  systemPressures,
} from './psi.ts';
export { type ControllerName, controllerNames, controllersIn, isSet, type Resources, setResources } from './resources.ts';
export { type Run, type RunResult, runCommand } from './run.ts';
export { expandSlice, parentSlice, parseSliceName, sliceName } from './slices.ts';
export { SystemdDriver, type SystemdDriverOptions } from './systemdDriver.ts';
export { realSleep, type Sleep } from './time.ts';
export {
  type Generation,
  maxShares,
  maxToMilliCpu,
  milliCpuToMax,
  milliCpuToShares,
  minShares,
  quotaToMax,
  sharesToWeight,
  weightToShares,
} from './weight.ts';
