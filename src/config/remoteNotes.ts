// pure
/** What is told of each desired topic, where there is more to tell than that its object was accepted. */
import type { KeyText, Source } from '../api/objects.ts';
import type { MissingObject } from './remoteIndexes.ts';
import type { RemoteNote, TopicRecord } from './remoteObjects.ts';

export type RemoteNotes = ReadonlyMap<KeyText, ReadonlyMap<Source, RemoteNote>>;

const gone = 'the broker does not have it any more; it goes on, since missing is not deleted';

/** `missing`: listed by an index, asked for, and not received. */
export function computeNotes(records: ReadonlyMap<string, TopicRecord>, missing: readonly MissingObject[]): RemoteNotes {
  const notes = new Map<KeyText, Map<Source, RemoteNote>>();
  const add = (key: KeyText, source: Source, note: RemoteNote): void => {
    const of = notes.get(key) ?? new Map<Source, RemoteNote>();
    of.set(source, note);
    notes.set(key, of);
  };
  for (const { place, note, lost, warnings, generation } of records.values()) {
    const counted = generation !== undefined && { generation };
    const accepted = { phase: 'Accepted' as const, problems: [], warnings, ...counted };
    if (note !== undefined) add(place.text, place.source, { ...note, warnings: [], ...counted });
    else if (lost) add(place.text, place.source, { ...accepted, reason: 'SourceGone', message: gone });
    else if (warnings.length > 0) add(place.text, place.source, { ...accepted, reason: 'FieldsWithoutEffect', message: '' });
  }
  for (const { topic, text, source, generation } of missing) {
    const record = records.get(topic);
    // what waits has a better reason, and what is refused was received
    if (record?.note !== undefined && record.hash !== undefined) continue;
    const message =
      record === undefined
        ? 'the index lists it, and nothing stands at its topic'
        : 'the index lists another payload than stands at its topic';
    add(text, source, {
      phase: 'Waiting',
      reason: 'Missing',
      message,
      problems: [],
      warnings: [],
      ...(generation !== undefined && { generation }),
    });
  }
  return notes;
}
