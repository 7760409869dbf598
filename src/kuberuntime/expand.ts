// pure
/**
 * `$(NAME)` in command, args and env values (facts 10.8). Mirrors kubelet v1.32 expansion: `$$` is a dollar sign, an unknown name and an
 * unclosed bracket stay as they are, and what was put in is not expanded again.
 */
import type { EnvVar } from '../api/v1.ts';

/** `lookup` gives the value of a name, undefined when there is none. */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  let out = '';
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i);
    const next = text.charAt(i + 1);
    if (char !== '$' || next === '') {
      out += char;
    } else if (next === '$') {
      out += '$';
      i++;
    } else if (next !== '(') {
      out += char;
    } else {
      const end = text.indexOf(')', i + 2);
      if (end === -1) {
        out += '$(';
        i++;
        continue;
      }
      const name = text.slice(i + 2, end);
      out += lookup(name) ?? `$(${name})`;
      i = end;
    }
  }
  return out;
}

/** The environment of a container in the order of its names; each value sees the ones before it, and a name given twice has its last value. */
export function environment(env: readonly EnvVar[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const { name, value } of env)
    values.set(
      name,
      expand(value ?? '', (n) => values.get(n)),
    );
  return values;
}
