// pure
/** Where a text stops being JSON. The parser's own message quotes the text around it, which may be a password. */

const whole =
  /\s*(?:(?<mark>[{}[\]:,])|(?<text>"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)(?!\w))/uy;

type Expected = 'value' | 'valueOrEnd' | 'key' | 'keyOrEnd' | 'colon' | 'commaOrEnd';

/** `line 3, column 5` of the first thing that cannot stand where it does; the end of the text when something is missing. */
export function jsonFault(text: string): string {
  const open: ('{' | '[')[] = [];
  let expected: Expected = 'value';
  let at = 0;
  for (;;) {
    whole.lastIndex = at;
    const found = whole.exec(text);
    if (found === null) break;
    const { mark, text: quoted } = found.groups ?? {};
    const next = step(expected, mark, quoted !== undefined, open);
    if (next === undefined) break;
    expected = next;
    at = whole.lastIndex;
  }
  return placeText(text, at + (/^\s*/.exec(text.slice(at))?.[0].length ?? 0));
}

/** What may follow; undefined: it must not stand there. */
function step(expected: Expected, mark: string | undefined, isText: boolean, open: ('{' | '[')[]): Expected | undefined {
  switch (expected) {
    case 'value':
    case 'valueOrEnd':
      if (mark === '{' || mark === '[') {
        open.push(mark);
        return mark === '{' ? 'keyOrEnd' : 'valueOrEnd';
      }
      if (mark === ']' && expected === 'valueOrEnd') {
        open.pop();
        return 'commaOrEnd';
      }
      return mark === undefined ? 'commaOrEnd' : undefined;
    case 'key':
    case 'keyOrEnd':
      if (isText) return 'colon';
      if (mark !== '}' || expected === 'key') return undefined;
      open.pop();
      return 'commaOrEnd';
    case 'colon':
      return mark === ':' ? 'value' : undefined;
    case 'commaOrEnd': {
      const inside = open.at(-1);
      if (mark === ',' && inside !== undefined) return inside === '{' ? 'key' : 'value';
      if (inside === undefined || mark !== (inside === '{' ? '}' : ']')) return undefined;
      open.pop();
      return 'commaOrEnd';
    }
  }
}

function placeText(text: string, at: number): string {
  const before = text.slice(0, at).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
