// pure
/** Reasons of answers to commands over MQTT, and of what is told about commands. */
import { nothing, type ReasonGroups } from './reasonText.ts';

const askAgain = 'Read the state of the node (`online`, `sync`) and send it again if it is still meant.';

export const commandReasons: ReasonGroups = {
  'What a command is answered': {
    BadCommand: {
      meaning: 'The payload is no Command; the message has the field.',
      remedy: 'Correct it; an empty payload is a command too.',
    },
    CommandTooLarge: { meaning: 'The payload is larger than a Command may be (64 KiB).', remedy: 'Send less.' },
    UnknownVerb: { meaning: 'The last level of the topic is no verb.', remedy: 'The verbs are listed in docs/mqtt.md.' },
    BadArguments: { meaning: 'An argument is unknown, missing or of a wrong type; the message has it.', remedy: 'Correct the argument.' },
    BadRequest: { meaning: 'The command cannot be carried out as it is written.', remedy: 'Read the message.' },
    NotValid: { meaning: 'What the command brings does not pass the checks.', remedy: 'Read the message.' },
    TargetRequired: { meaning: 'The verb is about one pod and the command names none.', remedy: 'Add `target: {namespace, pod}`.' },
    NotConfirmed: {
      meaning: 'What cannot be undone must be confirmed by the name of the node.',
      remedy: 'Add `args: {confirm: NODE}` if it is meant.',
    },
    NotFound: {
      meaning: 'There is no such thing on this node.',
      remedy: 'Check name and namespace; the message may know one that is near.',
    },
    Conflict: { meaning: 'The state of the pod or the node does not allow it now.', remedy: 'Read the message.' },
    Busy: { meaning: 'As many commands run and wait as may.', remedy: 'Try again in a moment.' },
    Unavailable: { meaning: 'What could answer is not there: the agent starts, or the runtime is away.', remedy: 'Try again in a moment.' },
    TookTooLong: {
      meaning: 'It did not end in its time; what it began may still go on.',
      remedy: 'Look at the state of the pod before it is tried again.',
    },
    InternalError: { meaning: 'It failed; the message says what of.', remedy: 'Read the message; the log of the agent has more.' },
    ReadFailed: { meaning: 'What was being read for the answer broke off; what came before it is whole.', remedy: 'Ask again.' },
    AnswerTooLarge: { meaning: 'The answer is larger than may be sent.', remedy: 'Ask for one namespace or one name.' },
    AnswerNotKept: {
      meaning: 'The command was carried out before; its answer was too large to keep.',
      remedy: 'Ask again under another id.',
    },
    AgentRestarted: {
      meaning: 'A command of this id was begun when the agent was started anew: whether it was done is not known.',
      remedy: 'Look at the state of the pod, then ask again under another id.',
    },
    IdReused: { meaning: 'Another command had the same id within the last ten minutes.', remedy: 'Give each command an id of its own.' },
    Queued: { meaning: 'The command waited in the broker while the node was away, and is not run any more.', remedy: askAgain },
    OtherSession: { meaning: 'The command names another session of the node than the current one.', remedy: askAgain },
    OtherBoot: { meaning: 'The command names another boot of the node than the current one.', remedy: askAgain },
    Replayed: { meaning: 'A signed command is run once in a session; this one was.', remedy: 'Sign a new one, with an id of its own.' },
    Replayable: {
      meaning: 'So many signed commands came in one session that no more can be remembered, so none is run.',
      remedy: '`systemctl restart podsched` begins a new session; pods keep running.',
    },
    OtherNode: { meaning: 'The command names another node.', remedy: 'Send it on the topic of that node.' },
    OtherVerb: { meaning: 'The command names another verb than its topic.', remedy: 'Send it on the topic of that verb.' },
    VerbDenied: {
      meaning: 'The policy of the node does not allow this verb over MQTT.',
      remedy: 'Add it to `policy.mqtt.verbs` if it is meant.',
    },
    NamespaceDenied: {
      meaning: 'The policy of the node allows no commands for pods in this namespace.',
      remedy: 'Add it to `policy.mqtt.namespaces` if it is meant.',
    },
    Retained: {
      meaning: 'A command that was published as retained is never run: the broker would send it again at each connection.',
      remedy: 'Take it back with an empty retained message (`mosquitto_pub -r -n -t TOPIC`) and publish without `-r`.',
    },
    ReplyTopicRefused: {
      meaning: 'The command asks for its answer on a topic that is not for answers of this node, so it is not run.',
      remedy: 'Use `podsched/v1/reply/<name>/<node>`, as response topic or as `replyTo`.',
    },
    LeaseEnded: {
      meaning: 'A log is not followed any more, as nobody renewed the lease.',
      remedy: 'Send the `logs` command again in time.',
    },
    ContainerEnded: { meaning: 'The container whose log was followed has ended.', remedy: nothing },
    LogFailed: { meaning: 'The log that was followed cannot be read on.', remedy: 'Ask again; the log of the agent says more.' },
  },
  'What events tell of commands': {
    Commanded: { meaning: 'A command over MQTT that changes something is carried out; the message says who asked.', remedy: nothing },
    CommandExec: {
      meaning: 'A program is run in a container by a command over MQTT; its arguments are not told.',
      remedy: 'Take `exec` out of `policy.mqtt.verbs` if nobody should.',
    },
    CommandRefused: {
      meaning: 'A command over MQTT was denied, or was wrong and asked for no answer; the message has the reason.',
      remedy: 'See the reason; look who may write to the command topics of the broker.',
    },
  },
};
