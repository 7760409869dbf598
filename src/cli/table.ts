/** Tables as kubectl draws them: no lines, three spaces between columns. Door of cli-table3, which knows how wide a character is. */
import Table from 'cli-table3';

const none = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '   ',
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a terminal
const control = /[\x00-\x1f\x7f-\x9f]+/g;

/** Text from manifests, images and runtimes, made harmless for a terminal. */
export const harmless = (text: string): string => text.replace(control, ' ');

/** The lines of a table, without its newline at the end. */
export function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({ head: [...head], chars: none, style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] } });
  table.push(...rows.map((row) => row.map(harmless)));
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}
