// pure
/** Validation of what a pod says of host name and DNS (kubelet v1.32 validatePodDNSConfig, ValidatePodSpec). */
import { itemPath } from './fieldPath.ts';
import { wrongIp, wrongLabel, wrongSubdomain } from './names.ts';
import type { Problem } from './objects.ts';
import { problemIf } from './problems.ts';
import type { PodSpec } from './v1.ts';

/** What a resolv.conf holds: resolvers read no more. */
export const dnsLimits = { servers: 3, searches: 32, searchLineLength: 2048, searchLength: 253 } as const;

/** Every mistake of hostname, subdomain, dnsPolicy and dnsConfig. */
export function validateDns(spec: Partial<PodSpec>): Problem[] {
  const problems: Problem[] = [];
  for (const field of ['hostname', 'subdomain'] as const) {
    const name = spec[field] ?? '';
    if (name !== '') problems.push(...problemIf(wrongLabel(name), `spec.${field}`, name));
  }
  const { nameservers = [], searches = [], options = [] } = spec.dnsConfig ?? {};
  const at = 'spec.dnsConfig';
  if (spec.dnsPolicy === 'None' && nameservers.length === 0)
    problems.push({ path: `${at}.nameservers`, expected: 'at least one, since dnsPolicy is None', got: 'none' });
  if (nameservers.length > dnsLimits.servers)
    problems.push({ path: `${at}.nameservers`, expected: `at most ${dnsLimits.servers}`, got: String(nameservers.length) });
  nameservers.forEach((ip, i) => {
    problems.push(...problemIf(wrongIp(ip), itemPath(`${at}.nameservers`, i), ip));
  });
  if (searches.length > dnsLimits.searches)
    problems.push({ path: `${at}.searches`, expected: `at most ${dnsLimits.searches}`, got: String(searches.length) });
  const length = searches.join(' ').length;
  if (length > dnsLimits.searchLineLength)
    problems.push({ path: `${at}.searches`, expected: `at most ${dnsLimits.searchLineLength} characters in all`, got: String(length) });
  searches.forEach((search, i) => {
    problems.push(...problemIf(wrongSubdomain(search.replace(/\.$/, '')), itemPath(`${at}.searches`, i), search));
  });
  options.forEach((option, i) => {
    if ((option.name ?? '') === '') problems.push({ path: `${itemPath(`${at}.options`, i)}.name`, expected: 'a name', got: 'nothing' });
  });
  return problems;
}
