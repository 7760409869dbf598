/** The last view, and which events were sent: says what is different, and each thing that is wrong once. */
import type { KeyText } from '../api/objects.ts';
import { type ConfigEvent, computeReports } from './reports.ts';
import { type ConfigView, computeView, type KnownViews, type ViewInput } from './view.ts';

export interface ConfigTellerDeps {
  /** Something that the view says of these objects, or of files (then perhaps of none), is different now. */
  changed(keys: KeyText[]): void;
  event(e: ConfigEvent): void;
}

export class ConfigTeller {
  #view: ConfigView = { objects: [], files: [], folder: { read: false } };
  #reported = new Map<string, string>();
  #known: KnownViews = new Map();

  constructor(private readonly deps: ConfigTellerDeps) {}

  get view(): ConfigView {
    return this.#view;
  }

  update(input: ViewInput): void {
    const before = this.#view;
    this.#view = computeView(input, this.#known);
    const keys = differentKeys(before, this.#view);
    const rest = (v: ConfigView): string => JSON.stringify([v.files, v.folder]);
    if (keys.length === 0 && rest(before) === rest(this.#view)) return;
    const reports = computeReports(this.#view);
    for (const [id, report] of reports) if (this.#reported.get(id) !== report.message) this.deps.event(report);
    this.#reported = new Map([...reports].map(([id, { message }]) => [id, message]));
    this.deps.changed(keys);
  }
}

/** Objects that came, went, or of which something else is said. */
function differentKeys(before: ConfigView, now: ConfigView): KeyText[] {
  const said = new Map(before.objects.map((o) => [o.key, o]));
  const keys: KeyText[] = [];
  for (const object of now.objects) {
    const old = said.get(object.key);
    if (old !== object && JSON.stringify(old) !== JSON.stringify(object)) keys.push(object.key);
    said.delete(object.key);
  }
  return [...keys, ...said.keys()];
}
