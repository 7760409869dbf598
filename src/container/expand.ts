// pure
/**
 * `$(NAME)` in command, args and env values (facts 10.8). Mirrors kubelet v1.32 expansion: `$$` is a dollar sign, an unknown name and an
 * unclosed bracket stay as they are, and what was put in is not expanded again.
 */

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
