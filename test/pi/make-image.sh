#!/bin/bash
# make-image.sh DIR PACKAGES: a Debian 13 for arm64 with what a Pi has before podsched is installed, as DIR/pi.img, DIR/vmlinuz and DIR/initrd,
# and busybox with the names of its applets, for images of pods. Root, without mounting anything; 6 to 12 minutes.
set -euo pipefail
dir=$1 packages=$2
mkdir -p "$dir"
root=$dir/root
say() { echo "image: $*"; }

# Programs of the other processor run here while the image is made, and not longer than that: a machine that runs foreign programs is another
# machine to everybody else. Under the name that Debian's own tools would give it, since mmdebstrap looks for that.
binfmt=/proc/sys/fs/binfmt_misc
give_back() {
  if [ "${registered:-}" = yes ]; then echo -1 >$binfmt/qemu-aarch64; fi
  if [ "${mounted:-}" = yes ]; then umount $binfmt || true; fi
  rm -rf --one-file-system "$root"
}
trap give_back EXIT
trap 'exit 130' INT TERM
if ! arch-test arm64 >/dev/null 2>&1; then
  if [ ! -e $binfmt/register ]; then
    mount -t binfmt_misc binfmt_misc $binfmt
    mounted=yes
  fi
  if [ ! -e $binfmt/qemu-aarch64 ]; then
    magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    printf '%s' ":qemu-aarch64:M:0:$magic:$mask:/usr/bin/qemu-aarch64-static:F" >$binfmt/register
    registered=yes
  fi
  arch-test arm64
fi

# An initramfs of three drivers instead of all: it is what a processor made of software spends most of its time on.
initramfs() {
  mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/etc/initramfs-tools/hooks"
  echo MODULES=list >"$1/etc/initramfs-tools/conf.d/pi"
  printf '#!/bin/sh\n[ "$1" = prereqs ] && exit 0\n. /usr/share/initramfs-tools/hook-functions\nfor m in virtio_pci virtio_blk ext4; do force_load $m; done\n' \
    >"$1/etc/initramfs-tools/hooks/pi"
  chmod 0755 "$1/etc/initramfs-tools/hooks/pi"
}
hook=$dir/setup-hook
{ echo '#!/bin/bash'; declare -f initramfs; echo 'initramfs "$1"'; } >"$hook"
chmod 0755 "$hook"

say "Debian packages"
mmdebstrap --mode=root --architectures=arm64 --variant=minbase --include="$packages" --setup-hook="$hook" \
  --aptopt='Acquire::Languages "none"' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' trixie "$root"
rm -rf "$root"/var/cache/apt/archives/*.deb "$hook"

say "settings"
echo pi >"$root/etc/hostname"
printf '127.0.0.1 localhost pi\n' >"$root/etc/hosts"
rm -f "$root/etc/resolv.conf"
echo nameserver 10.0.2.3 >"$root/etc/resolv.conf"
echo 5f0cde5c9a1d4d7b8e2f3a4b5c6d7e8f >"$root/etc/machine-id" # a first boot would set every service up anew
sed -i '1s#.*#root::0:0:root:/root:/bin/bash#' "$root/etc/passwd"
echo '/dev/vda / ext4 defaults,noatime 0 1' >"$root/etc/fstab"
mkdir -p "$root/boot/firmware" "$root/etc/systemd/network"
echo 'console=serial0,115200 root=PARTUUID=0 rootfstype=ext4 fsck.repair=yes rootwait' >"$root/boot/firmware/cmdline.txt" # as Pi OS has it
printf '[Match]\nName=en*\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/20-wired.network"
units=$root/etc/systemd/system
mkdir -p "$units/multi-user.target.wants"
ln -sf /usr/lib/systemd/system/systemd-networkd.service "$units/multi-user.target.wants/"
# a broker of the tests' own is started by them; nobody sits at a terminal; nothing comes by itself in the middle of a measurement
for unit in mosquitto.service getty@tty1.service serial-getty@ttyAMA0.service apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer \
  fstrim.timer dpkg-db-backup.timer systemd-networkd-wait-online.service; do
  ln -sf /dev/null "$units/$unit"
done
cat >"$units/pi-tests.service" <<'UNIT'
[Unit]
Description=what the host asks
After=containerd.service systemd-networkd.service
Wants=containerd.service
[Service]
Type=exec
# the kernel takes others first
OOMScoreAdjust=-1000
ExecStartPre=/bin/sh -c 'mkdir -p /mnt/host && mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 host /mnt/host'
ExecStart=/bin/sh -c 'sh /mnt/host/run.sh >/mnt/host/out.log 2>&1; sync; exec poweroff -f'
UNIT
ln -sf ../pi-tests.service "$units/multi-user.target.wants/pi-tests.service"

say "busybox for images of pods"
cp "$root/usr/bin/busybox" "$dir/busybox"
chroot "$root" /usr/bin/busybox --list >"$dir/busybox.applets"
chroot "$root" dpkg-query -W >"$dir/packages.txt"
cp "$root"/boot/vmlinuz-* "$dir/vmlinuz"
cp "$root"/boot/initrd.img-* "$dir/initrd"

say "disk"
rm -f "$dir/pi.img"
mke2fs -q -t ext4 -d "$root" "$dir/pi.img" 4G
say "done"
