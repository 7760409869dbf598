/** Topics of desired state that hold nothing which could be told at an object: indexes, `_config`, rollouts, and names that nobody knows. */
import type { Problem } from '../api/objects.ts';

const mostTopics = 100;

export class WrongTopics {
  #problems = new Map<string, readonly Problem[]>();

  /** What is wrong there now; nothing any more. The oldest gives way to the newest. */
  set(topic: string, problems: readonly Problem[]): void {
    this.#problems.delete(topic);
    if (problems.length === 0) return;
    this.#problems.set(topic, problems);
    for (const oldest of this.#problems.keys()) {
      if (this.#problems.size <= mostTopics) break;
      this.#problems.delete(oldest);
    }
  }

  /** By topic. */
  list(): [string, readonly Problem[]][] {
    return [...this.#problems].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  clear(): void {
    this.#problems.clear();
  }
}
