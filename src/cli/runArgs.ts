/** The arguments of `podsched run`: every configuration key is a flag, so a table of flags would repeat the table of keys. */
import { configurationKeys } from '../api/configuration.ts';
import { flagPath } from '../options.ts';

export interface RunArguments {
  readonly configFile?: string;
  readonly flags: Readonly<Record<string, string>>;
  /** What cannot be an argument of `run`. */
  readonly mistakes: readonly string[];
}

/** `--key=value`, `--key value`; a boolean alone is true. What a key means is judged by loadOptions. */
export function parseRunArguments(args: readonly string[]): RunArguments {
  const flags: Record<string, string> = {};
  const mistakes: string[] = [];
  let configFile: string | undefined;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? '';
    const [, name = '', attached] = /^--([^=]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (name === '') {
      mistakes.push(`run takes no argument ${JSON.stringify(arg)}; keys are written --key=value`);
      continue;
    }
    const path = flagPath(name);
    const alone = path !== undefined && configurationKeys[path]?.kind === 'bool';
    const next = args[i + 1];
    let value = attached;
    if (value === undefined && alone) value = 'true';
    if (value === undefined && next !== undefined && !next.startsWith('--')) {
      value = next;
      i++;
    }
    if (value === undefined) mistakes.push(`--${name} needs a value`);
    else if (name === 'config') configFile = value;
    else flags[path ?? name] = value;
  }
  return { ...(configFile !== undefined && { configFile }), flags, mistakes };
}
