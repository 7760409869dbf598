/** docs/fields.md, printed from the rows of fieldRows.ts. */
import { defaultPod, defaultPullPolicy } from '../../src/api/defaults.ts';
import { fieldsOf, type Shape } from '../../src/api/fields.ts';
import type { Pod } from '../../src/api/v1.ts';
import { memoryFloorBytes } from '../../src/api/validateContainer.ts';
import { answered, Prober, valueAt } from './fieldProbe.ts';
import { beyondList, type FieldRow, fieldRows, otherKey, wordsOf } from './fieldRows.ts';

const intro = `# Fields

Every field of Pod, ConfigMap and Secret (\`v1\`, Kubernetes 1.32), and what podsched makes of it. The tables are printed from the data that the
validator itself uses, and a test tries each row. \`podsched validate FILE\` says the same of a manifest, with lines.

| word | what it means |
|---|---|
| **supported** | Taken, and it means what it means in Kubernetes. "In part": something it holds is refused or ignored, see there. |
| refused | The object is not accepted while the field is set. The problem names the path and the reason; what ran before goes on as it was. |
| ignored | The object is accepted and the field has no effect. A warning names the path and the reason (in \`sync\`, and from \`podsched validate\`). |

- A field that no table has is unknown: a warning with the nearest name, and a refusal where \`strict\` is true.
- \`null\`, an empty list and an empty map are the same as absence, and so are \`""\`, \`0\` and \`false\` where Kubernetes has no pointer. Other values that
  say no more than absence does stand in the table as "same as absent": they are taken without a word, so that exported pods can be used.
- *Required* means: where the thing it belongs to is there at all. What is refused or ignored takes with it all that it holds.
- A path that begins with a dot goes on from the places named above its table. \`{a,b}\` is either; \`[]\` is each entry of a list; \`[key]\` is one key of a map.
- The columns of values and defaults hold what is data in the code. Forms of names, ranges of ports and the like are the kubelet's own and are told by the problem.
`;

/** The groups, each with the types that lead it; a type that leads none stands with the first that holds it. */
const groups: readonly { readonly title: string; readonly text: string; readonly leads: readonly string[] }[] = [
  { title: 'Objects', text: 'The three kinds, and the metadata they share.', leads: ['Pod', 'ConfigMap', 'Secret', 'ObjectMeta'] },
  { title: 'The pod', text: 'What holds for all containers of a pod.', leads: ['PodSpec', 'LocalObjectReference'] },
  {
    title: 'Containers',
    text: 'App containers, init containers (with sidecars) and ephemeral containers.',
    leads: ['Container', 'EphemeralContainer'],
  },
  {
    title: 'Environment',
    text: 'Variables, and where their values may come from.',
    leads: ['EnvVar', 'EnvFromSource', 'ObjectFieldSelector', 'ResourceFieldSelector'],
  },
  {
    title: 'Probes and hooks',
    text: 'Questions that are asked of a container, and what runs after its start and before its end.',
    leads: ['Probe', 'Lifecycle'],
  },
  { title: 'Security', text: 'Of a pod and of one container.', leads: ['PodSecurityContext', 'SecurityContext'] },
  { title: 'Placement', text: 'Where a pod may run.', leads: ['Affinity', 'Toleration', 'TopologySpreadConstraint'] },
  {
    title: 'Volumes',
    text: 'Volumes of a pod, by source, and where containers mount them.',
    leads: ['Volume', 'VolumeMount', 'VolumeDevice'],
  },
];

/** The whole page. */
export function fieldsPage(rows: readonly FieldRow[] = fieldRows()): string {
  const byType = new Map<string, FieldRow[]>();
  for (const row of rows) {
    const list = byType.get(row.owner) ?? [];
    byType.set(row.owner, list);
    list.push(row);
  }
  const grouped = groupTypes();
  const defaults = defaultsOf(rows);
  const contents = groups.map(({ title }) => {
    const links = [...grouped].filter(([type, group]) => group === title && byType.has(type)).map(([type]) => link(type));
    return `- [${title}](#${anchor(title)}): ${links.join(', ')}`;
  });
  const parts = groups.flatMap(({ title, text }) => {
    const types = [...grouped].filter(([, group]) => group === title).map(([type]) => type);
    return [`## ${title}`, '', text, '', ...types.flatMap((type) => section(type, byType.get(type) ?? [], defaults))];
  });
  return [intro, ...contents, '', ...parts].join('\n');
}

const anchor = (title: string): string => title.toLowerCase().replaceAll(' ', '-');
const link = (type: string): string => `[${type}](#${anchor(type)})`;
const code = (value: unknown): string => `\`${value === '' ? '""' : String(value)}\``;

/** Each type in the order it is met, with its group. */
function groupTypes(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const visit = (type: string, inherited: string): void => {
    const group = groups.find((g) => g.leads.includes(type))?.title ?? inherited;
    if (found.has(type)) return;
    found.set(type, group);
    for (const { shape } of fieldsOf(type).values()) {
      const inner = structOf(shape);
      if (inner !== undefined) visit(inner, group);
    }
  };
  for (const { title, leads } of groups) for (const type of leads) visit(type, title);
  return found;
}

function structOf(shape: Shape): string | undefined {
  if (shape.kind === 'list' || shape.kind === 'map') return structOf(shape.of);
  return shape.kind === 'struct' ? shape.type : undefined;
}

function section(type: string, rows: readonly FieldRow[], defaults: ReadonlyMap<string, string>): string[] {
  if (rows.length === 0) return [];
  const inherited = (row: FieldRow): boolean => !under(row.verdict.by, row.ownerPlace);
  const places = unique(rows.map((r) => r.ownerPlace));
  const whole = new Set(places.filter((p) => rows.every((r) => r.ownerPlace !== p || (inherited(r) && r.verdict.status !== 'supported'))));
  const open = places.filter((p) => !whole.has(p));
  const idle = places.filter((p) => rows.some((r) => r.ownerPlace === p && r.verdict.status === 'ignored'));
  const best = [open, idle, places].find((list) => list.length > 0) ?? [];
  const shown = rows.filter((r) => best.includes(r.ownerPlace));
  const single = best.length === 1;
  const lines = [`### ${type}`, ''];
  if (open.length > 0 && open.join() !== '') lines.push(`In ${braced(open)}.`, '');
  for (const [status, verb] of [
    ['refused', 'Refused'],
    ['ignored', 'Ignored'],
  ] as const) {
    const of = rows.filter((r) => whole.has(r.ownerPlace) && r.verdict.status === status);
    const reasons = unique(of.map((r) => r.verdict.reason));
    for (const reason of reasons) {
      const these = unique(of.filter((r) => r.verdict.reason === reason).map((r) => r.ownerPlace));
      lines.push(`${verb} as a whole in ${braced(these)}: ${reason}.`, '');
    }
  }
  lines.push('| path | type | here | values, defaults, reasons |', '|---|---|---|---|');
  const names = unique(shown.map((r) => r.name));
  for (const name of names) {
    const cells = new Map<string, FieldRow[]>();
    for (const row of shown) {
      if (row.name !== name) continue;
      const words = whole.has(row.ownerPlace)
        ? `${row.verdict.status} | ${valuesText(row).join('; ')}`
        : `${statusText(row)} | ${notes(row, defaults)}`;
      const text = `${typeText(row)} | ${words}`;
      cells.set(text, [...(cells.get(text) ?? []), row]);
    }
    for (const [text, of] of cells) {
      const [first] = of;
      if (first === undefined) continue;
      const key = name.replace(`[${otherKey}]`, '[any other key]');
      const path = single && first.ownerPlace !== '' ? `${first.ownerPlace}.${key}` : first.ownerPlace === '' ? key : `.${key}`;
      const at = cells.size === 1 ? '' : ` in ${braced(unique(of.map((r) => r.ownerPlace)))}`;
      lines.push(`| \`${path}\`${at} | ${text} |`.replace(/ +\|$/, ' |'));
    }
  }
  return [...lines, ''];
}

const unique = <T>(list: readonly T[]): T[] => [...new Set(list)];
const under = (place: string, of: string): boolean => of === '' || place.startsWith(`${of}.`);

const sorts: Readonly<Partial<Record<Shape['kind'], string>>> = {
  string: 'string',
  bool: 'boolean',
  bytes: 'base64 text',
  quantity: 'quantity',
  intOrString: 'integer or name',
  any: 'mapping',
  enum: 'word',
};

function shapeText(shape: Shape): string {
  if (shape.kind === 'struct') return link(shape.type);
  if (shape.kind === 'list') return `list of ${shapeText(shape.of)}`;
  if (shape.kind === 'map') return `map of ${shapeText(shape.of)}`;
  if (shape.kind === 'int') return shape.max === 2 ** 31 - 1 ? 'int32' : 'int64';
  return sorts[shape.kind] ?? shape.kind;
}
const typeText = (row: FieldRow): string => `${shapeText(row.shape)}${row.required ? ', *required*' : ''}`;

function statusText({ verdict, partly }: FieldRow): string {
  if (verdict.status !== 'supported') return verdict.status;
  return partly ? '**supported** in part' : '**supported**';
}

/** The words a field may have. */
function valuesText(row: FieldRow): string[] {
  if (row.name === 'defaultMode' || row.name === 'mode') return ['`0` to `0777`'];
  if (row.name === 'limits[memory]') return [`at least \`${memoryFloorBytes / 2 ** 20}Mi\``];
  const inner = row.shape.kind === 'list' ? row.shape.of : row.shape;
  const all = inner.kind === 'enum' ? inner.values : [];
  const right = row.verdict.status === 'supported' ? (wordsOf(row) ?? all) : all;
  if (right.length === 0) return [];
  const others = all.filter((v) => v !== '' && !right.includes(v));
  const only = right.length === 1 ? 'only' : 'one of';
  const more = row.verdict.status === 'supported' ? beyondList.get(`${row.owner}.${row.name}`)?.told : undefined;
  const list = [...right.map(code), ...(more === undefined ? [] : [more])];
  return [`${only} ${list.join(', ')}${others.length === 0 ? '' : `; refused: ${others.map(code).join(', ')}`}`];
}

function notes(row: FieldRow, defaults: ReadonlyMap<string, string>): string {
  const { status, by, reason } = row.verdict;
  const told = valuesText(row);
  const initial = status === 'supported' ? defaults.get(row.place) : undefined;
  if (initial !== undefined) told.push(`default ${initial}`);
  if (status !== 'supported') told.push(by === row.place ? reason : `with ${code(by)}`);
  const harmless = row.row.harmless ?? [];
  if (harmless.length > 0 && status !== 'supported') told.push(`same as absent: ${harmless.map(code).join(', ')}`);
  return told.join('; ');
}

/** What defaults.ts puts wherever a field is absent, found by giving it small pods. */
function defaultsOf(rows: readonly FieldRow[]): ReadonlyMap<string, string> {
  const prober = new Prober(rows);
  const pods = rows.filter((r) => r.kind === 'Pod');
  const values = new Map<string, Set<unknown>>();
  for (const probe of pods) {
    const pod = probe.verdict.status === 'supported' ? prober.find(probe, answered(probe))?.decoded.object : undefined;
    if (pod?.kind !== 'Pod') continue;
    const full = defaultPod(pod as Pod, 'node');
    for (const row of pods) {
      if (row.name.includes('[') || valueAt(pod, row.place) !== undefined) continue;
      // only where the struct itself was written
      if (row.ownerPlace !== '' && valueAt(pod, row.ownerPlace) === undefined) continue;
      const value = valueAt(full, row.place);
      const scalar = typeof value === 'object' ? undefined : value;
      values.set(row.place, (values.get(row.place) ?? new Set()).add(scalar));
    }
  }
  const told = new Map<string, string>();
  for (const [place, found] of values) {
    const [value] = found;
    if (found.size === 1 && value !== undefined) told.set(place, code(value));
  }
  // by the image: the same function says it of three
  const policies = new Map<string, string[]>();
  for (const image of ['x', 'x:latest', 'x:1']) {
    const policy = defaultPullPolicy(image);
    policies.set(policy, [...(policies.get(policy) ?? []), code(image)]);
  }
  const pulls = [...policies].map(([policy, images]) => `${code(policy)} for images as ${images.join(', ')}`).join('; ');
  for (const row of rows) if (row.name === 'imagePullPolicy' && told.has(row.place)) told.set(row.place, pulls);
  return told;
}

/** Places as few as possible: what differs in one step is written `{a,b}`. */
function braced(places: readonly string[]): string {
  let paths = places.map((place) => place.split('.').map((step) => [step]));
  const same = (a: readonly string[] | undefined, b: readonly string[] | undefined): boolean => a?.join() === b?.join();
  for (let merged = true; merged; ) {
    merged = false;
    for (let i = 0; i < paths.length && !merged; i++) {
      for (let j = i + 1; j < paths.length && !merged; j++) {
        const [a = [], b = []] = [paths[i], paths[j]];
        const differ = a.flatMap((step, n) => (same(step, b[n]) ? [] : [n]));
        const [n] = differ;
        if (a.length !== b.length || differ.length !== 1 || n === undefined) continue;
        const both = a.map((step, k) => (k === n ? [...step, ...(b[k] ?? [])] : step));
        paths = [...paths.slice(0, i), both, ...paths.slice(i + 1, j), ...paths.slice(j + 1)];
        merged = true;
      }
    }
  }
  const step = (names: readonly string[]): string => {
    if (names.length === 1) return names[0] ?? '';
    const lists = names.every((n) => n.endsWith('[]'));
    return lists ? `{${names.map((n) => n.slice(0, -2)).join(',')}}[]` : `{${names.join(',')}}`;
  };
  return paths.map((path) => code(path.map(step).join('.'))).join(', ');
}
