#!/bin/busybox sh
# The first process of a machine that the tests boot: the host's programs and the project, both on disks that cannot be
# written, below a memory that can; control groups of the second version alone. Ends with what `script` says.
B=/bin/busybox
$B mkdir -p /proc /sys /dev /host /project /memory /root
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B mount -t devtmpfs dev /dev
for module in /modules/*; do $B insmod "$module"; done
$B mount -t erofs -o ro /dev/vda /host
$B mount -t erofs -o ro /dev/vdb /project
$B mount -t tmpfs memory /memory
cover() {
  $B mkdir -p "/memory/$1/upper" "/memory/$1/work"
  $B mount -t overlay -o "lowerdir=/$1,upperdir=/memory/$1/upper,workdir=/memory/$1/work" overlay "$2"
}
cover host /root
for name in dev etc home proc root run srv sys tmp var/lib var/tmp; do $B mkdir -p "/root/$name"; done
cover project /root/srv
for name in proc sys dev; do $B mount --move "/$name" "/root/$name"; done
$B mkdir -p /root/dev/pts /root/dev/shm
$B mount -t devpts devpts /root/dev/pts
for name in dev/shm run tmp var/tmp; do
  $B mount -t tmpfs memory "/root/$name"
  $B chmod 1777 "/root/$name"
done
$B mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
$B ip link set lo up
echo root:x:0:0::/root:/bin/sh >/root/etc/passwd
echo root:x:0: >/root/etc/group
for name in shadow gshadow subuid subgid; do : >"/root/etc/$name"; done
$B cp /script /root/run/script
exec $B switch_root /root /bin/sh -c 'cd /srv; . /run/script; echo o >/proc/sysrq-trigger; sleep 60'
