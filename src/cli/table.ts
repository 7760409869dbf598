/** Tables as kubectl draws them: no lines, three spaces between columns. Door of cli-table3, which knows how wide a character is. */
import Table from 'cli-table3';
import { harmless } from '../world/terminal.ts';

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
