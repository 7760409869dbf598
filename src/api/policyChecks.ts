// pure
/** What must hold of the lists of a policy (`policy.file`, `policy.mqtt`) beyond that they are lists of texts. */
import { wrongLabel } from './names.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { shown } from './scalars.ts';
import { wrongSysctlPattern } from './sysctls.ts';
import { verbs } from './verbs.ts';

const mostItems = 256;
const longestItem = 512;

/** `vendor.com/class` or `vendor.com/class=name`, as the Container Device Interface has it. */
const cdiKind = /^[A-Za-z]([\w.-]*[A-Za-z0-9])?\/[A-Za-z]([\w-]*[A-Za-z0-9])?(=[A-Za-z0-9]([\w.:-]*[A-Za-z0-9])?)?$/;
const registry =
  /^((?=[^/]*[.:])|localhost(?=$|\/)|\[)(\[[a-fA-F0-9:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:\d{1,5})?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*\/?$/;

const orAll = (wrong: (item: string) => string | undefined) => (item: string) => (item === '*' ? undefined : wrong(item));

/** What an item must be, when it is not. */
const wrongItem: Readonly<Record<string, (item: string) => string | undefined>> = {
  hostPath: (item) =>
    item.startsWith('/') && !item.includes('\0') && !item.split('/').includes('..') ? undefined : 'an absolute path of the node without ..',
  devices: orAll((item) =>
    wrongLabel(item) === undefined || cdiKind.test(item)
      ? undefined
      : 'a class of devices such as gpio, a CDI name such as vendor.com/class, or *',
  ),
  capabilities: (item) => (/^[A-Za-z]+(_[A-Za-z]+)*$/.test(item) ? undefined : 'a capability such as NET_ADMIN, or ALL'),
  sysctls: orAll(wrongSysctlPattern),
  registries: (item) =>
    registry.test(item) ? undefined : 'a registry such as ghcr.io or docker.io, or a path below one, without https://',
  namespaces: orAll(wrongLabel),
  mayRead: orAll(wrongLabel),
  verbs: orAll((item) => ((verbs as readonly string[]).includes(item) ? undefined : 'a verb (docs/mqtt.md), or *')),
};

/** Every mistake in the lists of both policies. `v`: all keys by dotted path. */
export const checkPolicies = (v: Readonly<Record<string, unknown>>): Problem[] =>
  ['policy.file', 'policy.mqtt'].flatMap((key) => {
    const policy = v[key];
    if (typeof policy !== 'object' || policy === null) return [];
    return Object.entries(policy).flatMap(([name, value]: [string, unknown]) =>
      Array.isArray(value) ? checkList(`${key}.${name}`, name, value) : [],
    );
  });

function checkList(path: string, name: string, items: readonly unknown[]): Problem[] {
  if (items.length > mostItems) return [{ path, expected: `at most ${mostItems} items`, got: `${items.length}` }];
  const wrong = Object.hasOwn(wrongItem, name) ? wrongItem[name] : undefined;
  return items.flatMap((item, i): Problem[] => {
    if (typeof item !== 'string') return []; // told already
    const at = `${path}[${i}]`;
    if (item.length > longestItem) return [{ path: at, expected: `at most ${longestItem} characters`, got: `${item.length}` }];
    const expected = wrong?.(item);
    if (expected === undefined) return [];
    const close = name === 'verbs' ? nearest(item, verbs) : undefined;
    return [{ path: at, expected, got: shown(item), ...(close !== undefined && { nearest: close }) }];
  });
}
