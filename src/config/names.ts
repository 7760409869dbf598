// pure
/** Which names in the manifest folder are manifests (behaviour 9). */

/** The agent's own configuration lives in the same folder and is never read as a manifest. */
export const configurationFile = 'podsched.yaml';

/** `.yaml .yml .json`, but no dotfiles, editors' droppings and back-ups. */
export function isManifestName(name: string): boolean {
  if (name === configurationFile || name.startsWith('.')) return false;
  // `*~`, `4913`, `*.tmp`, `*.swp`, `*.swx`, `*.bak` and `#*#` end in something else
  return /\.(yaml|yml|json)$/.test(name);
}
