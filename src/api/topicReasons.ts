// pure
/** The reasons of objects that come over MQTT. */
import type { ReasonGroups } from './reasonText.ts';

export const topicReasons: ReasonGroups = {
  'What topics say': {
    SourceGone: {
      meaning: 'The broker does not have the object any more, and nobody deleted it; it goes on as it was accepted.',
      remedy:
        'Publish it again, for example if the broker lost its store. To delete it, say so: `podsched delete` with --node, --group or --all.',
    },
    Missing: {
      meaning: 'An index lists the object, or a newer payload of it, and the broker did not send that.',
      remedy: 'Publish the object, or take it out of the index. Look at the limits of the broker for queued and retained messages.',
    },
    Rollout: {
      meaning: 'The object is rolled out in waves, and this node is not in its turn yet; what ran before goes on.',
      remedy: 'Wait for the gate, or look at the rollout: `podsched rollout status ID`.',
    },
    NameMismatch: {
      meaning: 'The payload is of another kind, namespace or name than its topic says.',
      remedy: 'Publish it to the topic of its own name, or correct the manifest.',
    },
    GenerationFell: {
      meaning: 'The generation of the payload is lower than one that this topic had before: something old was sent again.',
      remedy: 'Raise the annotation podsched.dev/generation (of an index: `generation`) above the number in the message.',
    },
    GenerationConflict: {
      meaning: 'Two payloads of this topic have the same generation and are not the same; the first goes on.',
      remedy: 'Raise podsched.dev/generation of the one that is meant.',
    },
    TooLarge: {
      meaning: 'The payload is larger than brokers carry for sure (60 KiB).',
      remedy: 'Split ConfigMaps and Secrets, or put large files into an image or a volume.',
    },
    TooManyPods: {
      meaning: 'The source has as many pods as its policy allows (`maxPods`).',
      remedy: 'Remove a pod of that source, or raise `policy.mqtt.maxPods` or `policy.file.maxPods`. It is taken in when another one goes.',
    },
    TooManyObjects: {
      meaning: 'More topics of desired state than a node remembers (4,000).',
      remedy: 'Delete what is not needed, or spread it over groups that not every node is in.',
    },
  },
};
