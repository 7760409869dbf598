/** What each file of the folder said when it was last read. A file with the same bytes is not decoded again; only the hash of the bytes is kept. */
import { createHash } from 'node:crypto';
import type { KeyText } from '../api/objects.ts';
import type { FileText } from '../world/folder.ts';
import { type DecodedFile, decodeFile, type FileOptions } from './decode.ts';
import { refuseChanged } from './immutable.ts';
import type { Entry } from './merge.ts';
import { configurationFile } from './names.ts';
import type { Stretch } from './stretch.ts';

export class DecodedFolder {
  #files = new Map<string, { readonly of: string; readonly file: DecodedFile }>();

  constructor(private readonly stretch: Stretch) {}

  get files(): DecodedFile[] {
    return [...this.#files.values()].map((f) => f.file);
  }

  /** The files next to what is accepted: what an immutable object may not become is refused there. */
  besides(accepted: ReadonlyMap<KeyText, Entry>): readonly DecodedFile[] {
    return refuseChanged(this.files, accepted);
  }

  /** Every file was understood to its end: what none of them names, nobody wants. */
  get whole(): boolean {
    return this.files.every((f) => f.whole);
  }

  /** Keys that are named somewhere, also in what is refused. */
  get keys(): KeyText[] {
    return this.files.flatMap((f) => [...f.objects.map((o) => o.key), ...f.refusedKeys]);
  }

  /** Takes in a listing. True when anything is different from the last one. */
  async take(files: readonly FileText[], o: FileOptions): Promise<boolean> {
    let different = false;
    const { policy: _, ...plain } = o;
    const options = JSON.stringify(plain);
    const next = new Map<string, { readonly of: string; readonly file: DecodedFile }>();
    for (const file of files) {
      if (file.name === configurationFile) continue;
      await this.stretch.breathe();
      const of = `${fingerprint(file)} ${options} ${file.insecure ?? ''}`;
      const before = this.#files.get(file.name);
      if (before?.of === of) next.set(file.name, before);
      else {
        different = true;
        next.set(file.name, { of, file: decodeFile(file, o) });
      }
    }
    // without a new one, another number of files means that some went
    different ||= next.size !== this.#files.size;
    this.#files = next;
    return different;
  }
}

function fingerprint(file: FileText): string {
  if (!file.content.ok) return `${file.content.reason} ${file.content.message}`;
  const { bytes } = file.content;
  const signature = file.signature === undefined ? '' : createHash('sha256').update(file.signature).digest('base64');
  return createHash('sha256').update(bytes).digest('base64') + signature;
}
