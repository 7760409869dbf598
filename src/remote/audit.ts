// pure
/** A command in words for an event: who asked, and what for. Arguments of a program may hold secrets, so only its name and their number are told. */
import type { Asked, Who } from './words.ts';

const longest = 100;
const cut = (text: string): string => (text.length > longest ? `${text.slice(0, longest)}…` : text);

export function whoText({ requester, keyId }: Who): string {
  const name = requester ?? 'somebody who wants no answer';
  return keyId === undefined ? cut(name) : `${cut(name)}, signed with key ${cut(keyId)}`;
}

export function auditText({ verb, target, args }: Asked): string {
  const { namespace = 'default', pod, container } = target;
  const where = pod === undefined ? '' : ` ${container === undefined ? '' : `container ${container} of `}${namespace}/${pod}`;
  if (verb === 'exec') {
    const [program = '', ...rest] = Array.isArray(args.command) ? (args.command as readonly string[]) : [];
    return `exec in${where}: ${JSON.stringify(cut(program))} with ${rest.length === 1 ? '1 argument' : `${rest.length} arguments`}`;
  }
  if (verb === 'images') return `images ${String(args.do)}${typeof args.image === 'string' ? ` ${cut(args.image)}` : ''}`;
  const more = args.new === true ? ' --new' : args.forgetLost === true ? ' --forget-lost' : '';
  return `${verb}${where}${more}`;
}
