// pure
/**
 * Registry credentials in docker's words, and which of them an image is shown. Mirrors the kubelet's keyring (credentialprovider
 * keyring.go, config.go): hosts with wildcards, ports and path prefixes, the longest first. Nothing here ever repeats a value.
 */
import type { Secret } from '../api/v1.ts';
import type { RegistryAuth } from '../container/runtime.ts';
import { jsonFault } from './credentialsJson.ts';
import { fullName } from './fullName.ts';

/** One entry of `auths`, under its address. */
export interface Credential {
  /** Host with port and path, as it is matched: `*.example.com:5000/team`. */
  readonly address: string;
  readonly auth: RegistryAuth;
  /** Where it stands, for people: `Secret regcred`, `credentials.d/lab.json`. */
  readonly from: string;
}

/** What a text holds, and what of it has no effect or is wrong. */
export interface ReadCredentials {
  readonly credentials: readonly Credential[];
  readonly problems: readonly string[];
}

type Json = Readonly<Record<string, unknown>>;
const isMap = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Docker Hub under the name that `docker login` gives it. */
const hub = 'index.docker.io';

/** A `config.json` (`bare`: only what stands in its `auths`, the older form). Problems name places, never values. */
export function readDockerConfig(text: string, from: string, bare = false): ReadCredentials {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return { credentials: [], problems: [`is no JSON: ${jsonFault(text)}`] };
  }
  if (!isMap(parsed)) return { credentials: [], problems: ['is no JSON object'] };
  const problems: string[] = [];
  if (!bare) {
    for (const key of ['credsStore', 'credHelpers']) {
      const used = parsed[key];
      if (used !== undefined && used !== '' && !(isMap(used) && Object.keys(used).length === 0))
        problems.push(`${key}: no program is started for credentials; write them under auths`);
    }
    if (parsed.auths === undefined) {
      if (problems.length === 0) problems.push('auths: is missing');
      return { credentials: [], problems };
    }
  }
  const auths = bare ? parsed : parsed.auths;
  if (!isMap(auths)) return { credentials: [], problems: [...problems, 'auths: is no JSON object'] };
  const credentials: Credential[] = [];
  for (const [name, entry] of Object.entries(auths)) {
    // somebody may have written name and password into the address
    const shown = name.replace(/^.*@/s, '…@').slice(0, 200);
    const path = bare ? shown : `auths[${shown}]`;
    const address = addressOf(name);
    if (address === undefined) problems.push(`${path}: is no registry's address`);
    else {
      const auth = isMap(entry) ? readAuth(entry) : 'is no JSON object';
      if (typeof auth === 'string') problems.push(`${path}: ${auth}`);
      else credentials.push({ address, auth, from });
    }
  }
  return { credentials, problems };
}

/** One entry; a text says what is wrong with it. A name and password win over `auth`, as in the kubelet. */
function readAuth(entry: Json): RegistryAuth | string {
  const text = (key: string): string => (typeof entry[key] === 'string' ? entry[key] : '');
  const [identityToken, registryToken, auth] = [text('identitytoken'), text('registrytoken'), text('auth')];
  const tokens = { ...(identityToken !== '' && { identityToken }), ...(registryToken !== '' && { registryToken }) };
  if (text('username') !== '' || text('password') !== '') return { username: text('username'), password: text('password'), ...tokens };
  if (auth !== '') {
    const pair = decoded(auth);
    const colon = pair?.indexOf(':') ?? -1;
    if (pair === undefined || colon < 0) return 'auth: is no base64 of name:password';
    // docker login with a token writes a name without a password beside it
    if (identityToken !== '') return tokens;
    return { username: pair.slice(0, colon), password: pair.slice(colon + 1).replace(/\0+$/, ''), ...tokens };
  }
  return identityToken !== '' || registryToken !== '' ? tokens : 'has neither auth, username and password, nor a token';
}

function decoded(base64: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
  } catch {
    return undefined; // that is the answer
  }
}

/** `https://index.docker.io/v1/` → `index.docker.io`; the API version is no path. undefined: it has no host. */
function addressOf(name: string): string | undefined {
  const bare = name.trim().replace(/^https?:\/\//, '');
  const slash = bare.indexOf('/');
  const host = (slash < 0 ? bare : bare.slice(0, slash)).toLowerCase();
  if (host === '' || /[\s@]/.test(host)) return undefined;
  const path = (slash < 0 ? '' : bare.slice(slash)).replace(/^\/v[12](?=\/|$)/, '').replace(/[?#].*$/s, '');
  return path === '' || path === '/' ? host : `${host}${path}`;
}

/** Which Secret of which type holds what, or why it cannot be used. */
export function readPullSecret(secret: Secret): ReadCredentials {
  const from = `Secret ${secret.metadata.name}`;
  const kinds = { '.dockerconfigjson': 'kubernetes.io/dockerconfigjson', '.dockercfg': 'kubernetes.io/dockercfg' };
  for (const [key, type] of Object.entries(kinds)) {
    if (secret.type !== type) continue;
    const text = secret.stringData?.[key] ?? decoded(secret.data?.[key] ?? '');
    if (text === undefined) return { credentials: [], problems: [`${key}: is no base64 of a text`] };
    if (text === '') return { credentials: [], problems: [`${key}: is missing`] };
    return readDockerConfig(text, from, key === '.dockercfg');
  }
  return { credentials: [], problems: [`is of type ${secret.type ?? 'Opaque'}, not of ${Object.values(kinds).join(' or ')}`] };
}

/** Those that fit the image, the one of the longest address first; equal ones once. Of Docker Hub's own name only when nothing else fits. */
export function matching(image: string, all: readonly Credential[]): Credential[] {
  const name =
    fullName(image)
      ?.replace(/@.*$/, '')
      .replace(/:[^/:]*$/, '') ?? '';
  const slash = name.indexOf('/');
  const [host, path] = [name.slice(0, slash), name.slice(slash)];
  let fitting = all.filter((c) => fits(c.address, host, path));
  if (fitting.length === 0 && host === 'docker.io') fitting = all.filter((c) => c.address === hub);
  const seen = new Set<string>();
  return fitting
    .toSorted((a, b) => b.address.length - a.address.length || (a.address < b.address ? 1 : a.address > b.address ? -1 : 0))
    .filter((c) => {
      const key = JSON.stringify(c.auth);
      return !seen.has(key) && seen.add(key);
    });
}

/** Each part of the host by itself (`*` stands within one part), the same port, and a path that begins so. */
function fits(address: string, host: string, path: string): boolean {
  const slash = address.indexOf('/');
  const [wantedHost, wantedPath] = slash < 0 ? [address, ''] : [address.slice(0, slash), address.slice(slash)];
  if (!path.startsWith(wantedPath)) return false;
  const [wanted, has] = [splitPort(wantedHost), splitPort(host.toLowerCase())];
  if (wanted.port !== has.port || wanted.parts.length !== has.parts.length) return false;
  return wanted.parts.every((part, i) => partFits(part, has.parts[i] ?? ''));
}

function splitPort(host: string): { readonly parts: readonly string[]; readonly port: string } {
  const port = /:(\d*)$/.exec(host)?.[1] ?? '';
  return { parts: host.replace(/:\d*$/, '').split('.'), port };
}

/** `*` and `?` as a shell has them. Compared from both ends, so that no pattern takes long. */
function partFits(pattern: string, text: string): boolean {
  const pieces = pattern.split('*');
  const alike = (piece: string, at: number): boolean =>
    at >= 0 && at + piece.length <= text.length && [...piece].every((c, i) => c === '?' || c === text[at + i]);
  const first = pieces[0] ?? '';
  if (pieces.length === 1) return text.length === first.length && alike(first, 0);
  const last = pieces.at(-1) ?? '';
  if (!alike(first, 0) || text.length < first.length + last.length || !alike(last, text.length - last.length)) return false;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    while (at + piece.length <= text.length - last.length && !alike(piece, at)) at++;
    if (at + piece.length > text.length - last.length) return false;
    at += piece.length;
  }
  return true;
}
