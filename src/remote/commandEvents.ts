/** What is told of commands as events: each that changes something, with who asked, and each that was refused where nobody else hears of it. */
import type { EventSubject } from '../api/status.ts';
import { isVerb } from '../api/verbs.ts';
import type { AgentView } from '../operations/agentView.ts';
import { findPod } from '../operations/target.ts';
import type { Log } from '../world/log.ts';
import { harmless } from '../world/terminal.ts';
import { auditText, whoText } from './audit.ts';
import type { Asked, Refusal } from './words.ts';

export interface CommandEventsDeps {
  readonly log: Log;
  readonly nodeName: string;
  readonly event: (subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string) => void;
}

export class CommandEvents {
  constructor(private readonly deps: CommandEventsDeps) {}

  /** `level`: the verb of the topic, as it came. */
  refused(level: string, { reason, message }: Refusal, requester?: string): void {
    const verb = isVerb(level) ? level : 'an unknown verb';
    const who = whoText({ ...(requester !== undefined && { requester }) });
    this.deps.event(this.#node(), 'Warning', 'CommandRefused', harmless(`${verb}, asked for by ${who}: ${reason}: ${message}`));
  }

  /** Before it is done: what ends the agent is told, too. */
  carriedOut(asked: Asked, view: AgentView): void {
    const { event, log } = this.deps;
    const { namespace = 'default', pod: name } = asked.target;
    const pod = name === undefined ? undefined : findPod(view.pods(), { kind: 'Pod', namespace, name });
    const subject: EventSubject =
      pod === undefined || name === undefined
        ? this.#node()
        : { kind: 'Pod', namespace, name, ...(pod.metadata.uid !== undefined && { uid: pod.metadata.uid }) };
    log.info({ verb: asked.verb, ...asked.target, ...asked.who }, 'a command is carried out');
    event(
      subject,
      'Normal',
      asked.verb === 'exec' ? 'CommandExec' : 'Commanded',
      harmless(`${auditText(asked)}, asked for by ${whoText(asked.who)}`),
    );
  }

  #node(): EventSubject {
    return { kind: 'Node', namespace: 'default', name: this.deps.nodeName };
  }
}
