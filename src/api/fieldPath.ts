// pure
/** Field paths as people write them: `spec.containers[0].image`, `metadata.labels[app.kubernetes.io/name]`. */

const longest = 120;

export const fieldPath = (base: string, name: string): string => (base === '' ? shown(name) : `${base}.${shown(name)}`);
export const itemPath = (base: string, index: number): string => `${base}[${index}]`;
/** The place of one entry of a map. A key with other signs than names have is quoted. */
export const entryPath = (base: string, key: string): string => `${base}[${shown(key)}]`;

const shown = (key: string): string => {
  const cut = key.length > longest ? `${key.slice(0, longest)}…` : key;
  return /^[\w./~…-]+$/.test(cut) && !(cut.startsWith('"') || cut.includes(']')) ? cut : JSON.stringify(cut);
};
