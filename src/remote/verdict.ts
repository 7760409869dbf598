// pure
/**
 * Whether a command is run: one table, in the order in which it is asked. What is not meant for this moment is expired, what policy or a
 * signature does not allow is denied, and only then are its arguments looked at, so that nobody learns more of a denied verb than its denial.
 */
import { nearest } from '../api/nearest.ts';
import { problemText } from '../api/problems.ts';
import { isVerb, type Verb, verbs } from '../api/verbs.ts';
import { checkArgs, verbSpecs } from './arguments.ts';
import type { DecodedCommand } from './decode.ts';
import type { Args, Refusal } from './words.ts';

export interface VerdictFacts {
  readonly nodeName: string;
  readonly bootId: string;
  /** Of the connection; undefined: there is none any more. */
  readonly session: number | undefined;
  readonly allows: (verb: Verb) => boolean;
  /** `namespaces` of policy.mqtt: whose pods commands may be about. */
  readonly allowsNamespace: (namespace: string) => boolean;
  /** Why it may not be asked for in this form: unsigned, or signed for something else. */
  readonly distrusts: (command: DecodedCommand, verb: Verb) => { readonly reason: string; readonly message: string } | undefined;
  /** It may have waited in the broker while the node was away. */
  readonly queued: boolean;
}

export type Verdict = { readonly run: true; readonly verb: Verb; readonly args: Args } | ({ readonly run: false } & Refusal);

const refuse = (status: Refusal['status'], reason: string, message: string): Verdict => ({ run: false, status, reason, message });
const expired = (reason: string, message: string): Verdict => refuse('expired', reason, message);
const denied = (reason: string, message: string): Verdict => refuse('denied', reason, message);

/** `level`: the verb of the topic, as it came. */
export function judge(level: string, command: DecodedCommand, f: VerdictFacts): Verdict {
  if (!isVerb(level)) return refuse('error', 'UnknownVerb', unknownVerb(level));
  const verb = level;
  if (f.queued) return expired('Queued', 'it was sent while the node was away; send it again if it is still meant');
  if (command.node !== undefined && command.node !== f.nodeName) return denied('OtherNode', `it names another node than ${f.nodeName}`);
  if (command.verb !== undefined && command.verb !== verb) return denied('OtherVerb', `it names another verb than its topic, ${verb}`);
  if (command.bootID !== undefined && command.bootID !== f.bootId)
    return expired('OtherBoot', 'it names another boot of the node than this one');
  if (command.session !== undefined && command.session !== f.session)
    return expired('OtherSession', 'it names another session of the node than this one');
  if (!f.allows(verb)) return denied('VerbDenied', `policy.mqtt.verbs does not allow ${verb}`);
  const distrust = f.distrusts(command, verb);
  if (distrust !== undefined) return denied(distrust.reason, distrust.message);
  const { namespace = 'default', pod } = command.target ?? {};
  if (pod !== undefined && !f.allowsNamespace(namespace))
    return denied('NamespaceDenied', `policy.mqtt.namespaces allows no commands for pods in ${namespace}`);
  const spec = verbSpecs[verb];
  if (spec.target === 'pod' && pod === undefined)
    return refuse('error', 'TargetRequired', `${verb} is about one pod: target.pod must name it`);
  const checked = checkArgs(verb, command.args);
  if (!checked.ok) return refuse('error', 'BadArguments', problemText(checked.problem));
  if (verb === 'decommission' && checked.args.confirm !== f.nodeName)
    return refuse('error', 'NotConfirmed', `args.confirm: expected ${f.nodeName}, the name of the node`);
  if (checked.args.forgetLost === true && !f.allows('stop'))
    return denied('VerbDenied', 'forgetLost ends pods: policy.mqtt.verbs must allow stop as well');
  return { run: true, verb, args: checked.args };
}

function unknownVerb(level: string): string {
  const close = nearest(level, verbs);
  return close === undefined ? `the verbs are ${verbs.join(', ')}` : `there is no such verb; did you mean ${close}?`;
}
