// pure
/** The host's resolv.conf in words (resolv.conf(5), read as kubelet v1.32 network/dns/dns.go reads it). */
export interface HostDns {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

/** The last `search` line wins, `.` is no search domain, trailing dots go; comments and unknown words are passed over. */
export function parseResolvConf(text: string): HostDns {
  const servers: string[] = [];
  let searches: string[] = [];
  let options: string[] = [];
  for (const line of text.split('\n')) {
    const [word, ...rest] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/);
    if (word === 'nameserver' && rest[0] !== undefined) servers.push(rest[0]);
    if (word === 'search') searches = rest.filter((s) => s !== '.').map((s) => s.replace(/\.$/, ''));
    if (word === 'options') options = rest;
  }
  return { servers: servers.slice(0, 3), searches: searches.slice(0, 32), options };
}
