/** The one error of this package: which file, which value, which code, and a sentence a person can act on. */

/** What a kernel's code means when it comes from a cgroup file. */
const meanings: Readonly<Record<string, string>> = {
  EACCES: 'permission denied (not the owner of this cgroup, or not root)',
  EBUSY: 'busy (processes or child cgroups are in the way)',
  EEXIST: 'it exists already',
  EINVAL: 'the kernel does not take this value',
  ENODEV: 'no such device, or the group is being removed',
  ENOENT: 'no such file (the cgroup is gone, or its parent does not enable the controller)',
  ENOTEMPTY: 'it has children',
  ENOTSUP: 'not supported by this kernel or its configuration',
  EOPNOTSUPP: 'not supported by this kernel or its configuration',
  EPERM: 'not permitted',
  ERANGE: 'out of range',
  EROFS: 'the file system is read-only',
  ESRCH: 'no such process',
  ETIMEDOUT: 'it took too long',
};

export interface CgroupErrorInit {
  /** `ENOENT`, `EBUSY`, `EINVAL`, …; `ETIMEDOUT` where we gave up waiting, `EINVAL` where we refused a value ourselves. */
  readonly code: string;
  /** Absolute path of the file or folder, or the name of the systemd unit. */
  readonly file: string;
  /** What was written, when something was. */
  readonly value?: string | undefined;
  /** Replaces the sentence made of the code. */
  readonly detail?: string | undefined;
  readonly cause?: unknown;
}

export class CgroupError extends Error {
  override readonly name = 'CgroupError';
  readonly code: string;
  readonly file: string;
  readonly value: string | undefined;

  constructor(init: CgroupErrorInit) {
    const what = init.value === undefined ? init.file : `${init.file}: writing "${init.value}"`;
    const why = init.detail ?? meanings[init.code];
    super(why === undefined ? `${what}: ${init.code}` : `${what}: ${why} (${init.code})`, { cause: init.cause });
    this.code = init.code;
    this.file = init.file;
    this.value = init.value;
  }
}

/** The `code` of anything thrown by Node or by us. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** Any thrown thing as a CgroupError that names the file. */
export function asCgroupError(error: unknown, file: string, value?: string): CgroupError {
  if (error instanceof CgroupError) return error;
  return new CgroupError({
    code: codeOf(error) ?? 'EIO',
    file,
    value,
    detail: codeOf(error) === undefined ? String(error instanceof Error ? error.message : error) : undefined,
    cause: error,
  });
}
