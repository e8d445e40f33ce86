/** Sizes in decimal units, as shops and disks state them. */

export function sizeText(bytes) {
  const [unit, scale] = [["GB", 1e9], ["MB", 1e6], ["kB", 1000]].find(([, least]) => bytes >= least)
    ?? ["B", 1];
  return scale === 1 ? `${bytes} B` : `${(bytes / scale).toFixed(1)} ${unit}`;
}
