#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs end-to-end tests in a virtual machine with Debian's kernel, all controllers on cgroup v2 and the
# data directories on a file system with project quotas. The last line is: N passed, N failed.
# Usage: vm.sh [TEST_FILE...]      default: all
#   VM_KERNEL   which of Debian's kernels, by the beginning of its version (default: 6.1; or 6.12)
#   VM_DISK     ext4 or xfs with project quotas; plain: an ext4 without (default: ext4)
#   E2E_USER, E2E_DELEGATED, E2E_JOBS, BUILD_DIR   as for e2e.sh
# The root of the machine is made once, in build/vm: what `deps.sh --list` names, and this host's node.
# The tree is shared with it, read-only, and so are the programs that were built here.
set -eu
place=/srv/sandlot # of the tree, in the machine

# --- in the machine, where this script is PID 1 ---

guest() {
  export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
  mount -o remount,rw /
  # The initramfs has mounted /proc, /sys, /dev, /dev/pts and /run.
  mkdir /dev/shm
  mount -t tmpfs tmpfs /dev/shm
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  # Like a service manager: everybody is in a group of their own, and all controllers are on.
  mkdir /sys/fs/cgroup/init
  echo $$ >/sys/fs/cgroup/init/cgroup.procs
  sed 's/[a-z0-9_]*/+&/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
  # What nobody may load later, because it is asked for by those who may not.
  for module in loop overlay fuse nf_tables nft_tproxy; do modprobe $module; done
  ip link set lo up
  hostname sandlot-vm
  case "$VM_DISK" in plain) options=rw ;; *) options=prjquota ;; esac
  mount -o "$options" /dev/vdb /tmp
  chmod 1777 /tmp
  cd $place
  scripts/user.sh
  scripts/user.sh rootless
  # shellcheck disable=SC2086
  scripts/e2e.sh $VM_TESTS >/run/log 2>&1 &
  tail -F --pid=$! /run/log 2>/dev/null
  count() { awk -v name="$1" '$2 == name {n = $3} END {print n + 0}' /run/log; }
  grep -qE '^# pass ' /run/log || echo '# fail 1' >>/run/log
  echo "$(count pass) passed, $(($(count fail) + $(count cancelled))) failed"
  echo o >/proc/sysrq-trigger
  sleep 60
}
if [ $$ = 1 ]; then
  guest
fi

# --- on the host ---

cd "$(dirname "$0")/.."
dir=build/vm
scripts/test_packages.sh
packages="$(scripts/deps.sh --list test | sed 's/,nodejs,npm//'),libstdc++6,kmod,initramfs-tools,xfsprogs,linux-image-amd64,linux-image-6.12-amd64"

make_root() {
  rm -rf "$dir"
  mkdir -p "$dir"
  mmdebstrap --variant=minbase --include="$packages" bookworm "$dir/root"
  cp "$(command -v node)" "$dir/root/usr/local/bin/"
  mkdir "$dir/root$place"
  printf '#!/bin/sh\nmount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose tree %s && exec %s/scripts/vm.sh\n' \
    $place $place >"$dir/root/sbin/vm"
  chmod +x "$dir/root/sbin/vm"
  mke2fs -q -t ext4 -d "$dir/root" "$dir/root.img" 8G
  cp "$dir"/root/boot/vmlinuz-* "$dir"/root/boot/initrd.img-* "$dir"
  rm -rf "$dir/root"
}

make_disk() {
  rm -f "$dir/disk.img"
  truncate -s 20G "$dir/disk.img"
  case "$disk" in
    ext4) mke2fs -q -t ext4 -O quota,project "$dir/disk.img" ;;
    xfs) mkfs.xfs -q "$dir/disk.img" ;;
    plain) mke2fs -q -t ext4 "$dir/disk.img" ;;
    *) echo "vm.sh: unknown VM_DISK $disk" >&2; exit 2 ;;
  esac
}

disk=${VM_DISK:-ext4}
[ -e "$dir/root.img" ] || make_root
make_disk
kernel=$(find "$dir" -name "vmlinuz-${VM_KERNEL:-6.1}.*" | sed 's/.*vmlinuz-//' | head -n 1)
[ -n "$kernel" ] || { echo "vm.sh: there is no kernel ${VM_KERNEL:-6.1}" >&2; exit 2; }
# Where the processor cannot, a /dev/kvm is of no use to a kernel that does not know of it.
grep -qwE 'vmx|svm' /proc/cpuinfo && accel=kvm || accel=tcg,thread=multi

settings="VM_DISK=$disk BUILD_DIR=${BUILD_DIR:-build} E2E_JOBS=${E2E_JOBS:-1}"
[ "$accel" = kvm ] || settings="$settings E2E_PATIENCE=10 E2E_TIMEOUT_MS=3000000"
for name in E2E_USER E2E_DELEGATED; do
  eval "value=\${$name:-}"
  [ -z "$value" ] || settings="$settings $name=$value"
done
qemu-system-x86_64 -accel "$accel" -cpu max -smp 2 -m 4G -nographic -no-reboot -nic none \
  -kernel "$dir/vmlinuz-$kernel" -initrd "$dir/initrd.img-$kernel" \
  -drive "file=$dir/root.img,format=raw,if=virtio,snapshot=on" -drive "file=$dir/disk.img,format=raw,if=virtio,cache=unsafe" \
  -virtfs local,path=.,mount_tag=tree,security_model=none,readonly=on \
  -append "root=/dev/vda console=ttyS0 quiet loglevel=1 cgroup_no_v1=all init=/sbin/vm $settings VM_TESTS=\"$*\"" |
  stdbuf -oL tr -d '\r' | tee "$dir/log"
grep -qE '^[1-9][0-9]* passed, 0 failed$' "$dir/log"
