// pure
/** Reasons of events, of the node's conditions and of its broker: of what is told beside the state of an object. */
import { nothing, type ReasonGroups, wait } from './reasonText.ts';

export const eventReasons: ReasonGroups = {
  'What events tell besides': {
    BackOff: { meaning: 'A restart or a pull waits for its back-off.', remedy: 'See CrashLoopBackOff or ImagePullBackOff.' },
    Unhealthy: {
      meaning: 'A startup, liveness or readiness probe failed or could not be asked.',
      remedy: 'Read the message; make the same request or run the same command by hand. A slow node may need a longer timeoutSeconds.',
    },
    ProbeWarning: {
      meaning: 'A probe was sent to another host; it counts as success.',
      remedy: 'Let the probe ask for a path that the container answers itself.',
    },
    ProbeHint: {
      meaning: 'A probe does not fit its container: it only times out, or ends the container before it has started.',
      remedy: 'Give a slow container a startupProbe, a slow command a longer timeoutSeconds, a slow node a higher `probeScale`.',
    },
    Failed: {
      meaning: 'A container could not be pulled, made or started.',
      remedy: 'Read the message; the waiting reason of the container says more.',
    },
    InspectFailed: { meaning: 'The image could not be looked up.', remedy: 'See InvalidImageName or ImageInspectError.' },
    FailedCreatePodSandBox: { meaning: 'The sandbox could not be made.', remedy: 'See CreatePodSandboxError.' },
    DNSConfigForming: {
      meaning: 'A pod has more name servers or search domains than a resolver reads; some were left out.',
      remedy: 'The message has what is used. Shorten dnsConfig, or clusterDNS and the node’s resolv.conf.',
    },
    FailedPodSandBoxStatus: {
      meaning: 'The new sandbox could not be looked at.',
      remedy: '`journalctl -u containerd`; it is tried again.',
    },
    FailedUnmount: {
      meaning: 'What an ended pod had of the file system cannot go yet; a pod of the same name waits for it.',
      remedy:
        'Read the message: unmount what a container left mounted inside a volume (`umount`), or make a file mutable again (`chattr -i`); it is tried again.',
    },
    FailedKillPod: { meaning: 'The pod could not be ended.', remedy: 'See KillContainerError and KillPodSandboxError.' },
    FailedSync: { meaning: 'A step of the pod failed; it is tried again.', remedy: 'Read the message.' },
    FailedPostStartHook: { meaning: 'The postStart hook failed; the container was stopped.', remedy: 'See PostStartHookError.' },
    FailedPreStopHook: { meaning: 'The preStop hook failed; the container is stopped all the same.', remedy: 'Correct the hook.' },
    PreStopHookOverran: {
      meaning: 'The preStop hook took longer than the grace of the container; it was cut off and the container stopped.',
      remedy: 'Shorten the hook, or raise terminationGracePeriodSeconds.',
    },
    LifecycleHTTPFallback: {
      meaning: 'An https hook was answered in plain http and sent again over http.',
      remedy: 'Write `scheme: HTTP`, or let the container serve https on that port.',
    },
    SecretInEnv: {
      meaning: 'A container takes values of a Secret into its environment, which containerd stores as plain text on the card.',
      remedy: 'Nothing has to be done. A Secret that must not be on the card is better kept out of `env` and `envFrom`.',
    },
    ImageStale: {
      meaning: 'The registry of an image with imagePullPolicy Always gave no answer, so the image that was here runs.',
      remedy:
        'Nothing has to be done: it is fetched in the background when the registry is back, and used from the next start on. Read the message if the registry should be there.',
    },
    ImageRefreshed: {
      meaning: 'An image that could not be refreshed when its container started is what the registry has now.',
      remedy: 'Nothing has to be done. Restart the pod to use it at once, where a newer one came.',
    },
    PullProgress: { meaning: 'How much of an image has come; of the layers the runtime knows of so far.', remedy: wait },
    FailedToRetrieveImagePullSecret: {
      meaning: 'A Secret that imagePullSecrets names is not there, or holds no credentials; the image is pulled without it.',
      remedy:
        'Add the Secret (type kubernetes.io/dockerconfigjson) to the pod’s namespace beside its manifest, or put a docker config.json into `credentials.d`.',
    },
    WaitTimeout: {
      meaning:
        'The pod was started although what it waits for is not there: `podsched.dev/wait-timeout` passed. The message has what is missing.',
      remedy: 'Look why it is not there, or give it more time.',
    },
    ImageRepaired: {
      meaning: 'Files of an image were damaged, as a power cut soon after a pull leaves them; it was removed and fetched again.',
      remedy:
        'Nothing has to be done. If it happens often, have containerd write pulled images to the disk at once (`image_pull_with_sync_fs`, containerd 1.7.14 and later).',
    },
    ImageRepairFailed: {
      meaning: 'Files of an image seem damaged, and it was not or could not be replaced; once per image and boot it is tried.',
      remedy:
        'Read the message. In use: end what runs from it. Out of reach: it is tried again at the next restart of the container. At fault itself: a script without `#!`, or a damaged layer shared with other images: remove all of them (`crictl rmi`) and pull again.',
    },
    SandboxChanged: { meaning: 'The pod gets a new sandbox: the old one is dead, as after a reboot.', remedy: nothing },
    ImportFailed: {
      meaning:
        'An archive in `<stateDir>/images`, or a part of it, could not be taken in; the message names the file and what is wrong with it.',
      remedy:
        'Copy the archive again (`docker save`, `ctr images export`; gzip and zstd are fine), built for this node, owned by root and not writable by others; or take it away. It is looked at again when it changed.',
    },
    Imported: {
      meaning: 'The images of an archive are here now, and stay for as long as it lies in `<stateDir>/images`.',
      remedy: nothing,
    },
    SandboxImageMissing: {
      meaning: 'The image that containerd makes every pod’s sandbox of is not on this node: no pod starts before it could be pulled.',
      remedy:
        'Connect the node to the registry in the message; or `podsched doctor --fix`, which lets containerd take the image that podsched brings, and `systemctl restart containerd`.',
    },
    NotTold: {
      meaning: 'A message could not be told to the broker.',
      remedy: 'Read the message: too large, or refused by the broker’s access rules.',
    },
  },
  'The node and its broker': {
    BrokerUnreachable: {
      meaning: 'No broker answers; pods go on, and the last values are told when it is back.',
      remedy: 'Check `mqtt.servers`, the network and the broker.',
    },
    BrokerRefusesWrites: {
      meaning: 'The broker takes the connection and not the messages.',
      remedy: 'Give the user the access rules of the MQTT contract: read and write below its own node.',
    },
    DuplicateNode: {
      meaning: 'Another machine is online under this node name.',
      remedy: 'Give one of the two another name (`nodeName`), or remove the identity file of a cloned card.',
    },
    IdentityMoved: {
      meaning: 'The card is in another board, so the node took a new name.',
      remedy: 'Configure `nodeName` if it should keep its name.',
    },
    Unreachable: { meaning: 'The broker does not answer.', remedy: 'Check `mqtt.servers`, the network and the broker.' },
    Refused: { meaning: 'The broker refuses the connection.', remedy: 'Check user, password and certificate.' },
    TakenOver: {
      meaning: 'Another connection with the same client id took over.',
      remedy: 'Look for a second machine with this node name.',
    },
    OnlineNotReadBack: { meaning: 'What this node tells does not come back from the broker.', remedy: 'See BrokerRefusesWrites.' },
    PublishRefused: { meaning: 'The broker refuses a topic.', remedy: 'See BrokerRefusesWrites.' },
    MessageTooLarge: {
      meaning: 'The broker takes only smaller messages than this one.',
      remedy: 'Raise the broker’s largest packet size.',
    },
    MessageDropped: {
      meaning: 'A message ended the connection twice and is not sent again.',
      remedy: 'Raise the broker’s largest packet size; look at its log.',
    },
    NameTaken: { meaning: 'Another machine holds the node name; this one tells nothing under it.', remedy: 'See DuplicateNode.' },
    Listening: { meaning: 'The board is new; the node listens whether the old one is still online.', remedy: wait },
    AnotherMachine: { meaning: 'Another machine was heard under this node name.', remedy: 'See DuplicateNode.' },
    ConfigurationInvalid: {
      meaning: 'The configuration file is wrong or was emptied; the last good configuration runs.',
      remedy: 'Correct podsched.yaml at the place in the message (`podsched validate` checks it), then `systemctl reload podsched`.',
    },
    RestartNeeded: {
      meaning: 'The configuration was changed in keys that take effect at the next start of the agent.',
      remedy: '`systemctl restart podsched`; pods keep running meanwhile.',
    },
    BoardChanged: { meaning: 'The board is another than the identity file names.', remedy: 'See IdentityMoved.' },
    CredentialsInvalid: {
      meaning: 'A file of registry credentials (`credentials.d`) cannot be read, has entries that cannot be used, or is open to others.',
      remedy: 'The message has the file and the place. Write it as docker does (`auths`), with `chown root` and `chmod 600`.',
    },
    ImageDiskFilling: {
      meaning: 'The disk of images is less than ten points below `imageGCHighThresholdPercent`.',
      remedy: 'The message names what goes at the threshold. Free space, `podsched images prune`, or name in a manifest what must stay.',
    },
    ImageRemoved: { meaning: 'An image that nothing used or pinned was removed: its disk was full, or a person asked.', remedy: nothing },
    FreeDiskSpaceFailed: {
      meaning: 'The disk of images is too full, and the images that may go were not enough.',
      remedy: 'Something else fills it: `df -h` and `du -xh --max-depth=2 /var` show what.',
    },
    ImageGCFailed: { meaning: 'Removing images failed twice in a row.', remedy: 'Read the message; `journalctl -u containerd` has more.' },
    InvalidDiskCapacity: { meaning: 'The disk of images has no size.', remedy: 'Is it mounted? `df -h /var/lib/containerd`.' },
  },
};
