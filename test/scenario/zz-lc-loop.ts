import { RandomUpdates } from '/work/main/test/scenario/randomUpdates.ts';
const [a, b] = process.argv.slice(2).map(Number);
let bad = 0;
for (let s = a; s <= b; s++) {
  const story = new RandomUpdates(s);
  let f; try { f = await story.run(); } catch (e) { f = [String(e.stack)]; }
  if (f.length) { bad++; console.log(`seed ${s}: ${f.join('; ')}`); if (a===b) console.log(story.log.join('\n')); }
}
console.log('done', a, b, bad, 'bad');
