// pure
/** Every reason that podsched gives for a state, in words for a person: what it means, and what to do. `podsched why` and docs/reasons.md read it. */
import { commandReasons } from './commandReasons.ts';
import { eventReasons } from './eventReasons.ts';
import { nothing, type ReasonGroups, type ReasonText, wait } from './reasonText.ts';
import { topicReasons } from './topicReasons.ts';

const outOf: ReasonText = {
  meaning: 'The pod asks for more of a resource than is left beside what the other pods asked for; the message has the numbers.',
  remedy: 'Lower resources.requests, of this pod or of others, or remove a pod. The pod is tried again when another one ends.',
};

/** By the part that gives them, in the order of the documentation. */
export const reasonGroups: ReasonGroups = {
  'It is as it should be': {
    Accepted: { meaning: 'The object is accepted and stored; a pod of it has not been started yet.', remedy: nothing },
    Ready: { meaning: 'All containers run and are ready.', remedy: nothing },
    Succeeded: {
      meaning: 'All containers ended with exit code 0 and the restart policy asks for no more.',
      remedy: 'To run it once more, change it, or remove and add it again.',
    },
    PodCompleted: { meaning: 'The pod has ended with success, so it is not ready any more.', remedy: nothing },
    Removed: {
      meaning: 'No source names the object any more; its pod ends by its grace period.',
      remedy: 'Put the manifest back if that was not meant.',
    },
    Stopping: { meaning: 'The containers are being stopped by their grace period.', remedy: wait },
    Adopted: { meaning: 'A pod that an other version of podsched started was taken over as it runs.', remedy: nothing },
  },
  'What the sources say': {
    Invalid: {
      meaning: 'The object was refused; each mistake is listed with its place.',
      remedy: 'Correct the manifest at the line and path named. `podsched validate FILE` checks it without an agent.',
    },
    EditRefused: {
      meaning: 'The newest text of the winning source is refused; what was accepted last goes on.',
      remedy: 'Correct the manifest; `problems` of the source has the place.',
    },
    UpdateBlocked: {
      meaning: 'The newest text is accepted, and this node has no room, no port or no image for it now; what ran before goes on.',
      remedy: 'Read the message: it names what is missing. It is tried again when another pod ends, and a pull by its back-off.',
    },
    PullingImage: {
      meaning: 'An image of the newest text is being pulled; what ran before goes on until it is here.',
      remedy: wait,
    },
    Held: {
      meaning:
        'Edits of the pod wait, by its annotation podsched.dev/hold or by the command; what runs goes on, and is not rolled back either.',
      remedy: 'Take the annotation out of the manifest, or say `podsched release POD`.',
    },
    Stopped: {
      meaning: 'Somebody stopped the pod by command: nothing of it runs, over reboots too, until it is started.',
      remedy: 'Say `podsched start POD`. A manifest that is removed and put back starts it as well.',
    },
    RolledBack: {
      meaning:
        'The newest text was not Ready in the time of its annotation podsched.dev/rollback, or somebody rolled it back by command; the last one that was runs again.',
      remedy: 'Correct the manifest: a new edit is tried. `podsched release POD` tries the same one once more.',
    },
    NoRollback: {
      meaning:
        'The pod was not Ready in the time of its annotation podsched.dev/rollback, and no earlier text of it is known to have been.',
      remedy: 'Correct the manifest; `podsched why POD` says what is wrong with what runs.',
    },
    Shadowed: {
      meaning: 'Another source, or another file, has the same object and wins.',
      remedy: 'Remove one of the two. Files win over topics; of two files the one that runs keeps running.',
    },
    CheckpointLost: {
      meaning: 'The stored state could not be read; what runs is left running until the sources were read.',
      remedy: 'Put the manifest back, or say `podsched resync --forget-lost`. Check the card.',
    },
    InsecurePermissions: {
      meaning: 'Others may write this file or folder, so anybody may start pods.',
      remedy: '`chown root` and `chmod go-w` the file and the folder.',
    },
    SourceUnreadable: {
      meaning: 'The file or folder is there and cannot be read; what was accepted before goes on.',
      remedy: 'Look at the permissions, and at the kernel log for card errors.',
    },
    FieldsWithoutEffect: {
      meaning: 'Fields are known and have no effect here, or are not known; `problems` lists them.',
      remedy: 'Take them out, or correct the spelling. `strict: true` refuses them.',
    },
    WatchDegraded: {
      meaning:
        'The kernel has no watches left for the folder of manifests, or for those of devices; they are read every fileCheckFrequency, or every 20 s, instead.',
      remedy: 'Raise fs.inotify.max_user_watches and max_user_instances.',
    },
    ManifestFolderUnreadable: {
      meaning: 'The manifest folder is not there or cannot be read; what was accepted goes on.',
      remedy: 'Make the folder, or correct `staticPodPath`.',
    },
    StoreFailed: {
      meaning: 'The accepted object could not be stored, so it is not run: it would be lost at the next power cut.',
      remedy: 'Look at free space and the kernel log: a full or dying card.',
    },
  },
  'What policy and signatures say': {
    PolicyDenied: {
      meaning: 'The object asks for more than its source may; each field is listed with the key of the policy that would allow it.',
      remedy: 'Take it out of the manifest, or allow it in podsched.yaml of the node (`policy.mqtt`, `policy.file`) and send SIGHUP.',
    },
    Unsigned: {
      meaning: 'The policy asks for signatures (`requireSignature`), and this has none.',
      remedy: 'Sign it: `podsched sign -f FILE --key KEY`; `apply --sign KEY` for topics.',
    },
    SignatureInvalid: {
      meaning: 'The signature does not fit what it is about, or the envelope is broken: it was changed after it was signed.',
      remedy: 'Sign it again. If nobody changed it on purpose, find out who did.',
    },
    KeyUnknown: {
      meaning: 'It is signed by a key that this node does not know.',
      remedy: 'Put the public key into `keys.d` of the node and send SIGHUP, or sign it with a known one.',
    },
    KeysUnreadable: {
      meaning: 'A file in `keys.d` is damaged, unsafe or no public key; what it said before still holds, where it said anything.',
      remedy: 'Read the message, and correct or remove the file; then send SIGHUP.',
    },
    WrongPayloadType: {
      meaning: 'The envelope was signed for another use: a command is no manifest.',
      remedy: 'Sign it for what it is: `podsched sign` does.',
    },
    WrongAudience: {
      meaning:
        'It is meant for another node or group, or it is signed and does not say for whom it is, or came by a topic that it does not name.',
      remedy: 'Correct the annotation podsched.dev/audience (a node, group:<group> or *) and sign it again.',
    },
    GenerationMissing: {
      meaning: 'It is signed and has no generation, so nobody could tell it from an older one that is sent again.',
      remedy: 'Give it the annotation podsched.dev/generation, a number that never falls, and sign it again.',
    },
    KeyNotAllowed: {
      meaning: 'The key that signed it is known, and may not sign this: its file in `keys.d` bounds its namespaces, sources or verbs.',
      remedy: 'Sign it with another key, or widen the scope in the file of the key.',
    },
    CannotUnseal: {
      meaning: 'A sealed Secret does not open here: it was sealed for another node, or under another name, or is broken.',
      remedy:
        'Seal it with the sealing key that this node tells (`podsched get nodes -o yaml`): `podsched seal -f SECRET --recipient KEY`.',
    },
  },
  'What keeps a pod from starting': {
    WaitingForPredecessor: {
      meaning: 'A pod of the same name is still ending; two never run at once.',
      remedy: 'Wait for its grace period. If it hangs, look at its containers with `crictl ps`.',
    },
    RuntimeDown: {
      meaning: 'containerd does not answer; what runs goes on, nothing can be started or seen.',
      remedy: '`systemctl status containerd`, and check `containerRuntimeEndpoint`. podsched goes on by itself when it is back.',
    },
    NetworkNotReady: {
      meaning: 'The runtime has no pod network yet (CNI), so only hostNetwork pods start.',
      remedy:
        'Install a CNI configuration in /etc/cni/net.d and its plugins where containerd looks for them (`bin_dir`; Debian: /usr/lib/cni), or use `hostNetwork: true`.',
    },
    CreatePodSandboxError: {
      meaning: 'The runtime could not make the pod’s sandbox.',
      remedy: 'Read the message: a missing CNI plugin or a missing sandbox image are usual. `journalctl -u containerd` has more.',
    },
    FailedMount: {
      meaning:
        'A volume of the pod cannot be made, mounted or brought up to date. No container starts before it is made; what runs goes on with the files it has.',
      remedy:
        'Read the message; it names the volume. A ConfigMap, Secret or key that is not found: put it into the manifest folder, or mark the reference `optional: true`. A hostPath that is missing is created only with type DirectoryOrCreate or FileOrCreate; else mount the disk or make the path. The pod goes on by itself.',
    },
    WaitingForRoom: {
      meaning:
        'The pod is critical and has no room, so that pods which matter less end for it; the message has their names. It starts when they have ended.',
      remedy: wait,
    },
    WaitingForCPUs: {
      meaning: 'The pod is to have CPUs of its own (`cpuManagerPolicy: static`), and another pod that ends still has them.',
      remedy: wait,
    },
    WaitingForMount: {
      meaning:
        'The pod waits for a disk (`podsched.dev/wait-for: mount:…`): nothing is mounted at the path in the message yet, or any more.',
      remedy:
        'Attach and mount the disk (`findmnt PATH`, /etc/fstab); the pod goes on within seconds. `podsched.dev/wait-timeout` starts it anyway after a time.',
    },
    WaitingForPod: {
      meaning: 'The pod waits for another one to be ready (`podsched.dev/wait-for: pod/…=Ready`).',
      remedy: '`podsched why` of the pod in the message; it goes on at the moment that one is ready.',
    },
    WaitingForTimeSync: {
      meaning: 'The pod waits until the clock of the node is synchronized (`podsched.dev/wait-for: time-sync`).',
      remedy: '`timedatectl`: a time server must answer. `podsched.dev/wait-timeout` starts it anyway after a time.',
    },
    WaitingForNetwork: {
      meaning: 'The pod waits until the node has a default route (`podsched.dev/wait-for: network`).',
      remedy: '`ip route`: check cable, Wi-Fi and DHCP. `podsched.dev/wait-timeout` starts it anyway after a time.',
    },
    WaitingForDevice: {
      meaning:
        'The pod, or the container in the message, waits for a device (`resources.limits["devices.podsched.dev/…"]`, or the gate `device:…`): none of its class is there, other pods have them, or it may just have come and its group is not set yet (at most 5 s).',
      remedy:
        'Plug it in, or load its driver: `ls -l` of the paths in the message must show it. `devices` in podsched.yaml says what a class is. The pod goes on by itself when it is there.',
    },
    WaitCycle: {
      meaning: 'The pod is refused a start: it waits for a pod that waits, in the end, for this one; the message has the way.',
      remedy: 'Take one of the pods out of `podsched.dev/wait-for` of another.',
    },
    ImageVolumesUnsupported: {
      meaning: 'The pod has a volume of files of an image, and this runtime has no such volumes.',
      remedy: 'Upgrade to containerd 2.1 or later; or copy the files by an init container of that image into an emptyDir.',
    },
    ConfigPodSandboxError: { meaning: 'The sandbox configuration could not be built.', remedy: 'Read the message; it names the field.' },
    KillPodSandboxError: { meaning: 'An old sandbox could not be stopped.', remedy: '`journalctl -u containerd`; it is tried again.' },
    KillContainerError: {
      meaning: 'A container could not be stopped.',
      remedy: '`journalctl -u containerd`; a process stuck in the kernel (state D) needs its device or a reboot. It is tried again.',
    },
  },
  'What a container waits for': {
    ContainerCreating: { meaning: 'The container is about to be made.', remedy: wait },
    PodInitializing: { meaning: 'Init containers have not finished yet.', remedy: 'Wait, or look at the init container’s log.' },
    ContainersNotInitialized: { meaning: 'Init containers have not finished yet.', remedy: 'Wait, or look at the init container’s log.' },
    ContainersNotReady: {
      meaning: 'A container does not run or is not ready.',
      remedy: 'Look at the container named in the message, and at its log.',
    },
    UnknownContainerStatuses: { meaning: 'Nothing is known of the containers yet.', remedy: wait },
    CrashLoopBackOff: {
      meaning: 'The container keeps ending; the next start waits (10 s, doubled up to 5 min).',
      remedy:
        'Read its log and last exit code. Exit 137 with OOMKilled: raise the memory limit. Exit 1 at once: command or configuration. “exec format error”: the image is for another architecture.',
    },
    ErrImagePull: {
      meaning: 'The image could not be pulled.',
      remedy: 'Read the message: name, tag, network, credentials, or no image for this architecture.',
    },
    ImagePullBackOff: {
      meaning: 'The image could not be pulled; the next try waits.',
      remedy: 'As ErrImagePull. A correct image name is tried at once.',
    },
    ErrImageNeverPull: {
      meaning: 'The image is not on this node and imagePullPolicy is Never.',
      remedy: 'Import it (`ctr -n k8s.io images import FILE`) or use another policy.',
    },
    ImageInspectError: { meaning: 'The runtime could not look at the image.', remedy: 'Pull it again: `crictl rmi IMAGE`, then wait.' },
    InvalidImageName: { meaning: 'The image name cannot be read.', remedy: 'Correct it: lower case, `[registry/]name[:tag][@digest]`.' },
    RegistryUnavailable: { meaning: 'The registry does not answer.', remedy: 'Check network, name resolution and the registry.' },
    SignatureValidationFailed: {
      meaning: 'The signature of the image was not accepted.',
      remedy: 'Check the signature policy of the runtime.',
    },
    WrongPlatform: {
      meaning: 'The image is for another kind of processor than this node has; it could only end with “exec format error”.',
      remedy:
        'Use an image built for the node (the message has both): a multi-platform tag, or a tag of this architecture. It is looked for again after ten minutes, or at once when the manifest names another image.',
    },
    CreateContainerConfigError: {
      meaning: 'The container’s configuration could not be built (user, environment).',
      remedy:
        'Read the message. A ConfigMap or Secret that is not found: put it into the manifest folder, or mark the reference `optional: true`. runAsNonRoot needs a numeric user that is not 0.',
    },
    CreateContainerError: {
      meaning: 'The runtime could not make the container.',
      remedy: 'Read the message: a missing mount source, device or security profile are usual.',
    },
    PreCreateHookError: { meaning: 'The agent’s own step before creating failed.', remedy: 'Read the message.' },
    PreStartHookError: { meaning: 'The agent’s own step before starting failed.', remedy: 'Read the message.' },
    RunContainerError: {
      meaning: 'The container was made and its process could not be started.',
      remedy: 'Read the message: the command is not in the image, is not executable, or is for another architecture.',
    },
    PostStartHookError: { meaning: 'The postStart hook failed; the container was stopped.', remedy: 'Correct the hook or what it needs.' },
  },
  'How a pod ended': {
    ContainersFailed: {
      meaning: 'A container failed and the restart policy asks for no new try.',
      remedy: 'Read its log and exit code. Change the manifest, or remove and add it, to run it again.',
    },
    PodFailed: { meaning: 'The pod has failed, so it is not ready any more.', remedy: 'See the reason of the phase.' },
    DeadlineExceeded: {
      meaning: 'The pod ran longer than activeDeadlineSeconds.',
      remedy: 'Raise activeDeadlineSeconds, or find out why it took so long. It runs again when it is changed.',
    },
    Evicted: {
      meaning:
        'The node was short of memory, disk or process numbers, and this pod was ended for it, or it wrote more than its own limit allows; the message has what and how much. It comes back by itself when the shortage is over, later each time if it is evicted again soon; a Never pod may have half run and does not. “Pod was rejected”: it is not let in while the node is short.',
      remedy:
        '`podsched top pods` shows who uses what. Give the pod a memory limit and request (emptyDirs a sizeLimit) that fit what it needs, find its leak, or give the pods that matter more a higher priority.',
    },
    Preempting: {
      meaning:
        'The pod was ended to make room for a critical pod, which had none: priority 2000000000 and more, or one of the two classes of the system. It comes back by itself when there is room beside that one; a Never pod may have half run and does not.',
      remedy:
        'Lower what pods request, make the node larger, or take the critical pod away. `podsched top pods` and `podsched describe pod` show requests and use.',
    },
    TerminationByKubelet: {
      meaning: 'The condition DisruptionTarget: the agent ended the pod for the sake of the node or of a critical pod.',
      remedy: 'See the reason of the phase.',
    },
    OutOfcpu: outOf,
    OutOfmemory: outOf,
    OutOfpods: { ...outOf, remedy: 'Remove a pod, or raise `maxPods`. The pod is tried again when another one ends.' },
    NodeAffinity: {
      meaning: 'The pod is not for this node: nodeSelector or required node affinity do not match its labels.',
      remedy:
        'Nothing, if that is meant. Else correct them, or `nodeLabels` and `systemctl reload podsched`; the labels stand in the `info` topic.',
    },
    NodePorts: {
      meaning: 'A port of the host that the pod claims is in use; the message names the port and its holder.',
      remedy:
        'Take another hostPort (with hostNetwork: containerPort), or end the holder. The pod is tried again when the port may be free.',
    },
    NodeName: { meaning: 'The pod names another node.', remedy: 'Correct spec.nodeName, or leave it out.' },
    PodOSSelectorNodeLabelDoesNotMatch: {
      meaning: 'The pod’s label kubernetes.io/os is of another operating system than the node’s.',
      remedy: 'Correct the label, or leave it out.',
    },
    PodOSNotSupported: { meaning: 'spec.os.name is another operating system than the node’s.', remedy: 'Correct it, or leave it out.' },
    AppArmor: {
      meaning: 'The pod asks for an AppArmor profile, and the kernel has AppArmor not enabled.',
      remedy: 'Add `apparmor=1 security=apparmor` to the kernel command line (Pi: /boot/firmware/cmdline.txt) and reboot.',
    },
    UnexpectedAdmissionError: { meaning: 'The pod was not let onto this node.', remedy: 'Read the message.' },
    SandboxDied: {
      meaning: 'The sandbox of a Never pod died while the pod ran; it may have half run, so it does not run again by itself.',
      remedy: 'Look why the sandbox died (`journalctl -u containerd`), then change or re-add the manifest to run it again.',
    },
    NodeRebooted: {
      meaning: 'The node was rebooted while a pod with restartPolicy Never ran; it may have half run and is not run again.',
      remedy: 'Remove and add the manifest to run it again; use OnFailure if that should happen by itself.',
    },
    ContainerStatusUnknown: {
      meaning: 'The runtime lost the container before its end was seen; exit code 137 stands for “unknown”.',
      remedy: 'Usually after a crash of containerd. Always and OnFailure pods start again.',
    },
    Completed: { meaning: 'The container ended with exit code 0.', remedy: nothing },
    Error: { meaning: 'The container ended with another exit code than 0.', remedy: 'Read its log.' },
    OOMKilled: {
      meaning: 'The kernel killed the container for using more memory than its limit, or than the node has.',
      remedy: 'Raise resources.limits.memory, or find the leak.',
    },
    StartError: {
      meaning: 'The process could not be started (exit code 128).',
      remedy: 'The command is not in the image, is not executable, or is for another architecture.',
    },
  },
  ...eventReasons,
  ...commandReasons,
  ...topicReasons,
};

const all: ReadonlyMap<string, ReasonText> = new Map(Object.values(reasonGroups).flatMap((group) => Object.entries(group)));

/** What a reason means and what to do; undefined: it is not one of ours (the runtime's own, for example). */
export const explainReason = (reason: string): ReasonText | undefined =>
  all.get(reason) ?? (/^OutOf[a-z]/.test(reason) ? outOf : undefined);
