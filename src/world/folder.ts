/** The manifest folder as a port: reading it whole, and a tick that carries nothing but "look again". */
export interface FileText {
  readonly name: string;
  /** The bytes, or why they could not be had (permission, too large, not a regular file). */
  readonly content:
    | { readonly ok: true; readonly bytes: Uint8Array }
    | { readonly ok: false; readonly reason: string; readonly message: string };
  /** What stands in the file of the same name with `.sig` behind it. */
  readonly signature?: Uint8Array;
  /** Others may write this file: told as a warning, refused when strict. */
  readonly insecure?: string;
}

export type FolderListing =
  | { readonly ok: true; readonly files: readonly FileText[]; readonly insecure?: string }
  /** A missing or unreadable folder is a fault, never "delete all". */
  | { readonly ok: false; readonly message: string };

export interface FolderReader {
  read(): Promise<FolderListing>;
  /** Calls `onTick` when something may have changed, until aborted. `degraded` is told when only polling is left (undefined: watching again). */
  watch(onTick: () => void, onDegraded: (reason: string | undefined) => void, signal: AbortSignal): void;
}
