// pure
/**
 * What a plain YAML scalar means to Kubernetes. sigs.k8s.io/yaml reads with goyaml, which takes YAML 1.1's booleans and octal numbers,
 * 1.2's `0o`, underscores in numbers, and neither base 60 nor dates (they stay strings).
 */
export type Scalar =
  | { readonly is: 'string'; readonly value: string }
  | { readonly is: 'bool'; readonly value: boolean }
  | { readonly is: 'int'; readonly value: number; readonly text: string }
  | { readonly is: 'float'; readonly value: number }
  | { readonly is: 'null'; readonly value: null };

const string = (value: string): Scalar => ({ is: 'string', value });

const words = new Map<string, Scalar>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((w) => [w, { is: 'bool', value: true }] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((w) => [w, { is: 'bool', value: false }] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((w) => [w, { is: 'null', value: null }] as const),
  ...['.nan', '.NaN', '.NAN'].map((w) => [w, { is: 'float', value: Number.NaN }] as const),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((w) => [w, { is: 'float', value: Number.POSITIVE_INFINITY }] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((w) => [w, { is: 'float', value: Number.NEGATIVE_INFINITY }] as const),
]);

// one integer as Go's ParseInt(…, 0, 64) reads it: an optional sign, then a prefix that names the base
const integer = /^([-+]?)(?:0x([0-9a-f]+)|0b([01]+)|0o?([0-7]+)|([1-9][0-9]*|0))$/i;
const decimalFloat = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/;
const dateOrTime = /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ]|$)/;
const smallest = -(2n ** 63n);
const largest = 2n ** 64n - 1n;

function parseInteger(plain: string): Scalar | undefined {
  const m = integer.exec(plain);
  if (m === null) return undefined;
  const [, sign, hex, binary, octal, decimal] = m;
  const digits =
    hex !== undefined ? `0x${hex}` : binary !== undefined ? `0b${binary}` : octal !== undefined ? `0o${octal}` : (decimal ?? '0');
  const magnitude = BigInt(digits);
  const value = sign === '-' ? -magnitude : magnitude;
  // unsigned numbers beyond int64 are read only without a sign
  if (value < smallest || value > largest || (sign === '+' && value >= 2n ** 63n)) return undefined;
  return { is: 'int', value: Number(value), text: String(value) };
}

function parseFloatText(text: string): Scalar | undefined {
  if (!decimalFloat.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? { is: 'float', value } : undefined;
}

/** The meaning of a plain (unquoted) scalar without a tag. */
export function resolvePlain(text: string): Scalar {
  const word = words.get(text);
  if (word !== undefined) return word;
  const first = text.charAt(0);
  if (first === '.') return parseFloatText(text) ?? string(text);
  if (!/[-+0-9]/.test(first) || dateOrTime.test(text)) return string(text);
  const plain = text.replaceAll('_', '');
  return parseInteger(plain) ?? parseFloatText(plain) ?? string(text);
}

/** The meaning of a scalar that carries a tag; undefined when the tag does not fit (`!!int abc`). */
export function resolveTagged(tag: string, text: string): Scalar | undefined {
  const short = tag.replace(/^tag:yaml\.org,2002:/, '!!');
  const plain = resolvePlain(text);
  switch (short) {
    case '!!int':
    case '!!bool':
    case '!!null':
      return plain.is === short.slice(2) ? plain : undefined;
    case '!!float':
      return plain.is === 'float' || plain.is === 'int' ? { is: 'float', value: plain.value } : undefined;
    case '!!binary': {
      // blanks first: a pattern that allows them twice looks from each of them to the end
      const digits = text.replace(/\s+/g, '');
      return /^[A-Za-z0-9+/]*={0,2}$/.test(digits) ? string(Buffer.from(digits, 'base64').toString('utf8')) : undefined;
    }
    default:
      return string(text);
  }
}
