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
      remedy: 'Give a container that starts slowly a startupProbe, a slow command a longer timeoutSeconds.',
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
    CPUManagerFailed: {
      meaning: 'The CPU manager (`cpuManagerPolicy: static`) cannot do what it should: containers share CPUs that were to be one’s own.',
      remedy:
        'Read the message: correct reservedSystemCPUs, or look why the runtime refuses (`journalctl -u containerd`); it is tried again.',
    },
    CPUStateReset: {
      meaning:
        'Which container has which CPUs was kept for another machine, other reserved CPUs, or is damaged. It is made anew from what runs; nothing restarts.',
      remedy: nothing,
    },
    LimitsNotEnforced: {
      meaning:
        'The pod runs, and what the message names is not enforced: a controller (`memory`, `cpu`, `pids`) that the kernel does not offer; `pod level`: only each container is limited, not the pod as a whole; `cgroup differs`: it runs in another cgroup than it should, since it was started with other settings.',
      remedy:
        'The conditions of the node have the exact line and the file to change. With `cgroup differs`: restart the pod when it suits.',
    },
    FailedCreatePodContainer: {
      meaning: 'The pod’s cgroup could not be made, so the pod is not started; it is tried again.',
      remedy:
        'Read the message: it names the file and the value. With the systemd driver: `systemctl list-units kubepods*` and `journalctl -u systemd`.',
    },
    FailedKillPod: { meaning: 'The pod could not be ended.', remedy: 'See KillContainerError and KillPodSandboxError.' },
    ExceededGracePeriod: {
      meaning: 'A pod that was ended for the sake of the node or of another pod did not end within its grace and a half; it is tried on.',
      remedy: 'Look at its processes: one that hangs in the kernel (state D) waits for a disk or a network share.',
    },
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
    ProcessOOMKilled: {
      meaning:
        'The kernel killed one process of a container for using more memory than its limit, and the container goes on without it (`podsched.dev/memory-oom-group: "false"`, or a cgroup that is not the runtime’s own).',
      remedy: 'Raise resources.limits.memory, or find what takes it. Without the annotation the whole container ends and starts again.',
    },
    SecretInEnv: {
      meaning: 'A container takes values of a Secret into its environment, which containerd stores as plain text on the card.',
      remedy: 'Nothing has to be done. A Secret that must not be on the card is better kept out of `env` and `envFrom`.',
    },
    DeviceGone: {
      meaning:
        'A device that was given to a running container is not there any more. The container goes on without it, and is started again when the device is back, under whatever number.',
      remedy: 'Plug it in again; `dmesg` says why it went (cable, power). A pod with restartPolicy Never is not started again.',
    },
    DeviceNotAccessible: {
      meaning: 'A device was given to a container whose user may not open it: neither its group nor others may read and write it.',
      remedy:
        'A udev rule that gives it a group, such as SUBSYSTEM=="gpio", GROUP="gpio", MODE="0660" in /etc/udev/rules.d, then `udevadm trigger`; or run the container as root.',
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
    AgentTooLarge: {
      meaning: 'podsched itself had more memory than it may have at three looks in three minutes, and starts anew. Pods go on.',
      remedy: 'If it comes again: `podsched top`, and the size and number of manifests, ConfigMaps and probes; then an issue with the log.',
    },
    NotTold: {
      meaning: 'A message could not be told to the broker.',
      remedy: 'Read the message: too large, or refused by the broker’s access rules.',
    },
    MessageNotTaken: {
      meaning: 'A message came from the broker that is larger than any of the contract, or malformed, and was passed over unread.',
      remedy: 'Split what is too large (ConfigMaps); desired objects have at most 60 KiB. Else look who writes below desired/ and cmd/.',
    },
    HomeAssistantFull: {
      meaning: 'More pods have the label `podsched.dev/ha` than Home Assistant’s message of this node has room for (40 entities, 60 KiB).',
      remedy: 'Take the label off pods that nobody looks at there; all pods are on their own topics as ever.',
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
    BrokerRefusesReads: {
      meaning: 'The broker takes the connection and does not let this node read what it follows; everything else goes on.',
      remedy: 'Give the user the access rules of the MQTT contract for the topics in the message. They are asked for again every 5 min.',
    },
    DuplicateNode: {
      meaning: 'Another machine is online under this node name.',
      remedy: 'Give one of the two another name (`nodeName`), or remove the identity file of a cloned card.',
    },
    KubeletReady: { meaning: 'The node can start pods.', remedy: nothing },
    KubeletNotReady: {
      meaning: 'The node cannot start pods now; what runs goes on. The message lists why.',
      remedy: 'See RuntimeDown and NetworkNotReady.',
    },
    NetworkReady: { meaning: 'The runtime has a network for pods.', remedy: nothing },
    KubeletHasSufficientMemory: { meaning: 'The node has memory enough.', remedy: nothing },
    KubeletHasInsufficientMemory: {
      meaning: 'The node is short of memory: pods over their requests are evicted, and BestEffort pods are not let in.',
      remedy: '`podsched top pods` shows who has it. Set or lower memory limits, move a pod, or add swap (zram).',
    },
    KubeletHasNoDiskPressure: { meaning: 'The disks of the node have room enough.', remedy: nothing },
    KubeletHasDiskPressure: {
      meaning: 'A disk of the node is all but full: images and ended containers go, then pods are evicted, and no pod is let in.',
      remedy: '`df -h` and `du -xh --max-depth=2 /var` show what fills it; `podsched images prune` removes images.',
    },
    KubeletHasSufficientPID: { meaning: 'The node has process numbers enough.', remedy: nothing },
    KubeletHasInsufficientPID: {
      meaning: 'The node is about to run out of process numbers.',
      remedy: 'Look for a pod that starts processes without end (`ps -eo nlwp,comm --sort=-nlwp`), and set `podPidsLimit`.',
    },
    NodeReady: { meaning: 'The node can start pods again.', remedy: nothing },
    NodeNotReady: { meaning: 'The node cannot start pods now.', remedy: 'See KubeletNotReady.' },
    NodeHasSufficientMemory: { meaning: 'The node is not short of memory any more.', remedy: nothing },
    NodeHasInsufficientMemory: { meaning: 'The node is short of memory.', remedy: 'See KubeletHasInsufficientMemory.' },
    NodeHasNoDiskPressure: { meaning: 'The disks of the node have room again.', remedy: nothing },
    NodeHasDiskPressure: { meaning: 'A disk of the node is all but full.', remedy: 'See KubeletHasDiskPressure.' },
    NodeHasSufficientPID: { meaning: 'The node has process numbers enough again.', remedy: nothing },
    NodeHasInsufficientPID: { meaning: 'The node is about to run out of process numbers.', remedy: 'See KubeletHasInsufficientPID.' },
    MemoryCgroupOff: {
      meaning: 'The kernel has no memory controller (as Raspberry Pi OS is delivered): pods run, and no memory limit is enforced.',
      remedy: 'Add the words in the message to the file it names, in the one line that is there, and reboot.',
    },
    CgroupControllerMissing: {
      meaning: 'The kernel does not offer a cgroup controller; limits that need it are not enforced.',
      remedy: 'Read the message; `cat /sys/fs/cgroup/cgroup.controllers` shows what there is.',
    },
    CgroupV1: {
      meaning: 'This machine uses cgroup v1: the runtime limits each container, and limits of whole pods and QoS classes are not made.',
      remedy:
        'Add the word in the message to the kernel command line and reboot; Debian 12, Raspberry Pi OS bookworm and later have v2 by themselves.',
    },
    CgroupsNotWritable: {
      meaning: 'The agent may not make cgroups here, so that only the runtime limits containers.',
      remedy: 'Run the agent as root on the machine itself; in a container give it a writable cgroup namespace.',
    },
    NodeAllocatableEnforced: {
      meaning: 'All pods together are limited to what the node has without `systemReserved` and `kubeReserved`.',
      remedy: nothing,
    },
    FailedNodeAllocatableEnforcement: {
      meaning: 'The limit of all pods together could not be written; it is tried again every minute.',
      remedy: 'Read the message: it names the file and the value.',
    },
    UnderVoltage: {
      meaning: 'The supply voltage is, or was within the last five minutes, below what the board needs. Cards lose data by that.',
      remedy:
        'Use the power supply made for the board (Pi 4: 5.1 V 3 A, Pi 5: 5.1 V 5 A), a short thick cable, and a powered hub for what hangs on USB.',
    },
    Throttled: {
      meaning: 'The firmware slows the processor, or did within the last five minutes: for heat or for a weak supply.',
      remedy: 'With UnderVoltage: the power supply. Else cool the board: a heat sink, a fan, a case with openings.',
    },
    Overheating: {
      meaning: 'The processor is so hot that the firmware slows it.',
      remedy: 'Cool the board: a heat sink, a fan, a case with openings; or give its pods lower CPU limits.',
    },
    ReadOnlyRoot: {
      meaning:
        'Nobody can write to the disk in the message: nothing new can be accepted or stored. The kernel makes a failing card read-only.',
      remedy:
        '`dmesg --level=err,warn` says why. Replace the card if it has errors. If the disk is read-only on purpose, put `stateDir` on one that is not.',
    },
    SDCardWear: {
      meaning: 'The card says that it is about to be worn out.',
      remedy: 'Copy what is on it and replace it soon. Logs and databases wear a card most: put them on another disk, or in memory.',
    },
    ClockUnsynced: {
      meaning: 'The clock was not set from the network since the start: times in statuses may be wrong, and TLS and pulls may fail.',
      remedy:
        '`timedatectl timesync-status`: check the network, DNS and that UDP port 123 is open to a time server; or add a clock chip (RTC).',
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
    SubscriptionRefused: { meaning: 'The broker refuses a subscription.', remedy: 'See BrokerRefusesReads.' },
    MarkerNotReadBack: {
      meaning: 'What this node says to itself to know that all has been read does not come back: commands are not run.',
      remedy: 'Let the user write and read its own `_marker` topic; see BrokerRefusesWrites.',
    },
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
    EvictionThresholdMet: {
      meaning:
        'Less memory, disk or process numbers are free than the thresholds (`evictionHard`, `evictionSoft`) ask for. Of the disk, old logs, ended containers and unused images go first; then the pod that matters least and uses most is evicted.',
      remedy:
        'See the event Evicted of a pod. Where no pod could give it back, something else has it: `free -m`, `df -h`, `du -xh --max-depth=2 /var`, `ps -eLf`.',
    },
    FreeDiskSpaceFailed: {
      meaning: 'The disk of images is too full, and the images that may go were not enough.',
      remedy: 'Something else fills it: `df -h` and `du -xh --max-depth=2 /var` show what.',
    },
    ImageGCFailed: { meaning: 'Removing images failed twice in a row.', remedy: 'Read the message; `journalctl -u containerd` has more.' },
    InvalidDiskCapacity: { meaning: 'The disk of images has no size.', remedy: 'Is it mounted? `df -h /var/lib/containerd`.' },
  },
};
