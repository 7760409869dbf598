/** The child's side of `brokerChild.ts`: it answers its parent, and ends with it. */

/** Answers each message with what `act` returns; one that fails ends the process with its reason. Says first that it is there. */
export function serve(act: (message: Record<string, unknown>) => Promise<object>): void {
  process.on('disconnect', () => process.exit(0));
  process.on('message', (message: Record<string, unknown>) => {
    act(message).then(
      (answer) => process.send?.(answer),
      (e: unknown) => {
        console.error(e);
        process.exit(1);
      },
    );
  });
  process.send?.({ ready: true });
}
