import { version } from './version.ts';
export async function runCommand(_args: readonly string[]): Promise<number> {
  console.log(version);
  return 0;
}
