/** What a doctor found, as people read it: of this machine (doctor.ts) or told by another one. */
import type { Finding } from '../operations/doctorFinding.ts';
import { harmless } from '../world/terminal.ts';
import { exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';

const signs: Readonly<Record<Finding['level'], string>> = { ok: 'ok     ', advice: 'advice ', wrong: 'WRONG  ' };

/** 0: nothing is wrong (advice apart). */
export function printFindings(findings: readonly Finding[], print: Pick<Printer, 'out'>): number {
  for (const { name, level, message, remedy } of findings) {
    print.out(`${signs[level]}${harmless(name)}: ${harmless(message)}\n`);
    if (level !== 'ok' && remedy !== undefined) print.out(`       ${harmless(remedy)}\n`);
  }
  return findings.some((f) => f.level === 'wrong') ? exitCodes.failed : exitCodes.done;
}
