# guest.sh - a virtual machine with a disk: Debian's cloud kernel, an initramfs of a few programs of
# this machine, and qemu without KVM. tests/system/guest.sh and bench/guest.sh source it, after
# BUILD is absolute.
#
# A script uses it like this:
#	# prints the missing parts, a word or more; nothing if all is there
#	guest_missing
#	# the kernel, into $BUILD/guest, if it is not there
#	guest_fetch || echo "$guest_why"
#	# an initramfs: `job` is run by busybox's sh, then the machine is switched off
#	guest_image initrd job mkfs.ext4 fio
#	# qemu with such options; its console is NAME.console, its pid $guest
#	guest_start NAME initrd "${disk[@]}"
#	# a line that `job` reads on its standard input, after it has said that it is there
#	guest_tell WORD
#
# The kernel's package is fetched through the machine's own lists and unpacked there; nothing is
# installed, and no root is needed. In a job, programs are in /bin, busybox's too. /proc, /sys and
# /dev are there, and virtio's drivers. The job prints on the console, where the kernel prints as
# well: lines that count begin with `guest: `.

guest_modules='virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk'
guest_dir=$BUILD/guest
guest=
guest_why=

guest_missing()
{
	local program missing=
	for program in qemu-system-x86_64 cpio busybox apt-get dpkg; do
		command -v $program >/dev/null || missing="$missing $program"
	done
	[ -z "$missing" ] || echo "not there:$missing (tests/lib/deps.sh long installs them)"
}

# Sets guest_why where it fails.
guest_fetch()
{
	(
		flock 9 || exit 1
		[ ! -e "$guest_dir/vmlinuz" ] || exit 0
		package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
			sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
		[ -n "$package" ] || exit 1
		rm -rf "$guest_dir/fetched"
		mkdir -p "$guest_dir/fetched" && cd "$guest_dir/fetched" || exit 1
		apt-get -q -o APT::Sandbox::User=root -o Acquire::http::Timeout=20 \
			-o Acquire::Retries=1 download "$package" && dpkg -x ./*.deb . || exit 1
		for module in $guest_modules; do
			find lib/modules -name "$module.ko" -exec cp {} .. \;
			[ -e "../$module.ko" ] || exit 1
		done
		mv boot/vmlinuz-* ../vmlinuz && rm -rf "$guest_dir/fetched"
	) 9>"$guest_dir.lock" >"$guest_dir.log" 2>&1 && return
	guest_why="Debian's cloud kernel (linux-image-cloud-amd64) cannot be had, see $guest_dir.log; \`apt-get update\` may help"
	return 1
}

# with_libraries ROOT PROGRAM: copies a program of this machine, and what it is linked with
with_libraries()
{
	local program file
	program=$(PATH=$PATH:/usr/sbin:/sbin command -v "$2") || return
	install -D "$program" "$1/bin/$2" || return
	for file in $(ldd "$program" 2>/dev/null | grep -o '/[^ ]*'); do
		[ -e "$1$file" ] || install -D "$file" "$1$file" || return
	done
}

# guest_image FILE JOB PROGRAM...
guest_image()
{
	local file=$1 job=$2 at=$1.d program
	shift 2
	rm -rf "$at"
	mkdir -p "$at/bin" "$at/proc" "$at/sys" "$at/dev" "$at/mnt" "$at/tmp" "$at/etc" \
		"$at/drivers" || return
	for program in busybox "$@"; do
		with_libraries "$at" "$program" || return
	done
	: >"$at/etc/mtab"
	for program in $guest_modules; do
		cp "$guest_dir/$program.ko" "$at/drivers" || return
	done
	cp "$job" "$at/job" || return
	cat >"$at/init" <<-END
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		mount -t proc proc /proc
		mount -t sysfs sys /sys
		mount -t devtmpfs dev /dev
		stty -echo
		for driver in $guest_modules; do
			insmod /drivers/\$driver.ko
		done
		sh /job
		sync
		poweroff -f
	END
	chmod +x "$at/init"
	(cd "$at" && find . | cpio --quiet -o -H newc | gzip -1) >"$file" && rm -rf "$at"
}

# guest_start NAME INITRD OPTION...: of qemu, for the disk; options with memory replace the plain
# 256 MiB
guest_start()
{
	local name=$1 initrd=$2 memory=(-machine pc)
	shift 2
	[[ " $* " != *" memory-backend-memfd,"* ]] || memory=(-machine pc,memory-backend=memory)
	rm -f "$name.in"
	mkfifo "$name.in" || return
	qemu-system-x86_64 -nodefaults -no-user-config -accel tcg,thread=single -cpu max -smp 1 \
		-m 256 -display none -no-reboot "${memory[@]}" \
		-kernel "$guest_dir/vmlinuz" -initrd "$initrd" -append "console=ttyS0 panic=-1 quiet tsc=reliable no_timer_check ${guest_append:-}" \
		-serial stdio "$@" <>"$name.in" >"$name.console" 2>"$name.qemu" &
	guest=$!
	guest_in=$name.in
}

guest_tell()	# WORD
{
	echo "$1" 1<>"$guest_in"
}
