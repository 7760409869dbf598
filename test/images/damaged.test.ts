import assert from 'node:assert/strict';
import { test } from 'node:test';
import { damageSign, type Ended } from '../../src/images/damaged.ts';

const ended = (o: Partial<Ended>): Ended => ({ exitCode: 1, message: '', log: '', mounts: ['/etc/hosts', '/data'], ...o });

const startFailed =
  'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: ';

const damaged: readonly (readonly [what: string, o: Partial<Ended>])[] = [
  // as containerd 1.6.20 with runc 1.1.4 logged them
  ['an empty entry point', { log: 'exec /d/empty: exec format error\n' }],
  ['an entry point of zeros', { log: 'exec /d/zeros: exec format error\n' }],
  ['a program cut inside its header', { log: 'exec /d/trunc64: exec format error\n' }],
  ['a script whose interpreter is empty', { log: 'exec /d/shebangempty: exec format error\n' }],
  ['a loader that is empty', { log: 'exec /bin/app: input/output error\n' }],
  ['a loader of zeros', { log: 'exec /bin/app: accessing a corrupted shared library\n' }],
  // as glibc 2.36 said them
  [
    'a library that is empty',
    { exitCode: 127, log: '/bin/ls: error while loading shared libraries: /lib/x86_64-linux-gnu/libc.so.6: file too short\n' },
  ],
  ['a library of zeros', { exitCode: 127, log: '/bin/ls: error while loading shared libraries: /lib/libc.so.6: invalid ELF header\n' }],
  ['musl', { exitCode: 127, log: 'Error loading shared library libz.so.1: Exec format error (needed by /usr/bin/app)\n' }],
  ['an older runc', { log: 'standard_init_linux.go:228: exec user process caused: exec format error\n' }],
  ['crun, in the log', { log: 'exec container process `/bin/app`: Exec format error\n' }],
  [
    'crun, at the start',
    { exitCode: 128, message: `${'OCI runtime start failed: '}exec container process \`/bin/app\`: Exec format error` },
  ],
  ['a name with spaces', { log: 'exec /opt/my app/run: exec format error\n' }],
  ['a folder that only begins like a mount', { log: 'exec /database/run: exec format error\n' }],
];

for (const [what, o] of damaged)
  test(`${what} is a sign of damage`, () =>
    assert.equal(damageSign(ended(o)), (o.log ?? o.message)?.trim().replace(/^OCI.*?: (?=exec)/, '')));

const other: readonly (readonly [what: string, o: Partial<Ended>])[] = [
  ['an end as it should be', { exitCode: 0, log: 'exec /bin/app: exec format error\n' }],
  ['a program that is cut in the middle', { exitCode: 139 }],
  ['nothing said', {}],
  ['a missing interpreter', { log: 'exec /d/script: no such file or directory\n' }],
  ['a missing entry point', { exitCode: 128, message: `${startFailed}"/d/missing": stat /d/missing: no such file or directory: unknown` }],
  ['an entry point that may not be executed', { exitCode: 128, message: `${startFailed}"/d/app": permission denied: unknown` }],
  ['a program that tells of another one', { log: 'fork/exec /usr/bin/tool: exec format error\n' }],
  ['a program that ran before', { log: 'starting\nexec /usr/bin/tool: exec format error\n' }],
  ['a program that goes on after', { log: 'exec /usr/bin/tool: exec format error\nretrying\n' }],
  ['a script of a ConfigMap without its first line', { log: 'exec /data/run.sh: exec format error\n' }],
  ['a mounted file itself', { log: 'exec /etc/hosts: exec format error\n' }],
  ['a relative path below a mount', { log: 'exec ./run.sh: exec format error\n', workingDir: '/data' }],
];

for (const [what, o] of other) test(`${what} is no sign of damage`, () => assert.equal(damageSign(ended(o)), undefined));
