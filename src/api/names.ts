// pure
/** The forms of names in Kubernetes: each check yields what was expected, or undefined when the name is right. */

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const qualified = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** RFC 1123 label: containers, namespaces, host names. */
export const wrongLabel = (name: string): string | undefined =>
  name.length <= 63 && label.test(name) ? undefined : 'at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit';

/** RFC 1123 subdomain: names of objects. */
export const wrongSubdomain = (name: string): string | undefined =>
  name.length <= 253 && subdomain.test(name)
    ? undefined
    : 'at most 253 of a-z, 0-9, - and ., each part beginning and ending with a letter or digit';

/** The key of a label or annotation: `name` or `prefix/name`. */
export function wrongQualifiedName(key: string): string | undefined {
  const parts = key.split('/');
  const name = parts.at(-1) ?? '';
  const prefix = parts.length === 2 ? parts[0] : undefined;
  const right =
    parts.length <= 2 && name.length <= 63 && qualified.test(name) && (prefix === undefined || wrongSubdomain(prefix) === undefined);
  return right ? undefined : 'a key: at most 63 letters, digits, -, _ and ., after an optional domain and /';
}

export const wrongLabelValue = (value: string): string | undefined =>
  value === '' || (value.length <= 63 && qualified.test(value))
    ? undefined
    : 'at most 63 letters, digits, -, _ and ., beginning and ending with a letter or digit';

/** The name of a port (IANA service name). */
export const wrongPortName = (name: string): string | undefined =>
  name.length <= 15 && /^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) && /[a-z]/.test(name)
    ? undefined
    : 'at most 15 of a-z, 0-9 and single -, with at least one letter';

/** kubelet v1.32, RelaxedEnvironmentVariableValidation: anything printable but `=`. */
export const wrongEnvName = (name: string): string | undefined =>
  /^[\x20-\x3c\x3e-\x7e]+$/.test(name) ? undefined : 'printable ASCII without =';

/** A key of a ConfigMap or Secret, which may become a file name. */
export const wrongDataKey = (key: string): string | undefined =>
  key.length <= 253 && /^[-._a-zA-Z0-9]+$/.test(key) && key !== '.' && !key.startsWith('..')
    ? undefined
    : 'at most 253 letters, digits, -, _ and ., not . and not beginning with ..';

export function wrongIp(ip: string): string | undefined {
  const v4 = /^(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/;
  return v4.test(ip) || isIpv6(ip, v4) ? undefined : 'an IP address such as 192.0.2.1 or ::1';
}

function isIpv6(ip: string, v4: RegExp): boolean {
  const halves = ip.split('::');
  if (!ip.includes(':') || halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  const last = groups.at(-1) ?? '';
  const dotted = last.includes('.');
  if (dotted && !v4.test(last)) return false;
  const plain = dotted ? groups.slice(0, -1) : groups;
  const count = plain.length + (dotted ? 2 : 0);
  return plain.every((g) => /^[0-9a-fA-F]{1,4}$/.test(g)) && (halves.length === 2 ? count < 8 : count === 8);
}
