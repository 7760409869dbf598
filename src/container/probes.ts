// pure
/** What probes have found, in the words that the prober, the runtime manager and the status share. */

export type ProbeResult = 'success' | 'failure' | 'unknown';

/** What probes know of one pod's containers. `id`: the container's newest record, undefined while there is none. */
export interface ProbeView {
  /** Its startup probe has succeeded; undefined: it has none. A container nobody has looked at yet has not started. */
  started(container: string, id: string | undefined): boolean | undefined;
  /** Its readiness probe has succeeded; undefined: it has none. A container nobody has looked at yet is not ready. */
  ready(container: string, id: string | undefined): boolean | undefined;
}
