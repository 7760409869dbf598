// pure
/** The text of a pod's resolv.conf. Never empty: a resolver without a file asks the machine itself. */

export interface ResolvWords {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

export function resolvText({ servers, searches, options }: ResolvWords): string {
  return [
    '# Written by podsched, and again when the DNS servers of the node change.',
    ...(searches.length > 0 ? [`search ${searches.join(' ')}`] : []),
    ...servers.map((server) => `nameserver ${server}`),
    ...(options.length > 0 ? [`options ${options.join(' ')}`] : []),
    '',
  ].join('\n');
}
