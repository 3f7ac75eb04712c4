"""A machine with software adapters of InfiniBand: a kernel of Debian that qemu runs
without help of the processor.

The machine sees the root directory of this one, which it cannot change, below an overlay that is
lost when it ends. A kernel package is downloaded and not installed. Package, modules and the small
system that boots are kept in a cache.
"""

import hashlib
import pathlib
import re
import shutil
import subprocess

PACKAGE = "linux-image-amd64"
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "veth", "dummy", "crc32_generic",
           "ib_uverbs", "ib_umad", "rdma_ucm", "rdma_rxe", "unix_diag", "tcp_diag", "udp_diag")
MEMORY_MIB = 1536
PROCESSORS = 2

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do
  insmod /modules/$module.ko || echo "machine: module $module was not loaded"
done
mount -t tmpfs tmpfs /memory
mkdir /memory/upper /memory/work
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 host /lower
mount -t overlay -o lowerdir=/lower,upperdir=/memory/upper,workdir=/memory/work overlay /root
for directory in proc sys; do mount --move /$directory /root/$directory; done
mount --move /dev /root/dev
mkdir -p /root/dev/shm /root/dev/pts
mount -t devpts -o ptmxmode=666 devpts /root/dev/pts
for directory in dev/shm tmp run; do mount -t tmpfs tmpfs /root/$directory; done
mkdir -p /root/run/share
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=524288 share /root/run/share
ip link set lo up
hostname machine
exec switch_root /root /bin/bash -c '
/bin/bash /run/share/script </dev/null >/run/share/output 2>&1
echo $? >/run/share/status
sync
echo o >/proc/sysrq-trigger
sleep 60
'
"""


class Unavailable(Exception):
    """This computer cannot have such a machine; the text says why."""


def _command(*words, **options):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, **options).stdout


def _kernel_package():
    """The name of the kernel that the package depends on, with the version in it."""
    text = _command("apt-cache", "depends", PACKAGE)
    found = re.search(r"Depends: (linux-image-\S+)", text)
    if found is None:
        raise Unavailable(f"apt-cache knows no kernel behind {PACKAGE}")
    return found[1]


def _needed_by(path):
    """The modules that one needs, as it says itself."""
    found = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
    return [name for name in found[1].decode().split(",") if name] if found else []


def _in_order(files):
    """The modules in an order in which they can be loaded. One that is not
    there is part of the kernel."""
    order = []

    def add(name):
        path = files.get(name.replace("-", "_"))
        if path is None or path in order:
            return
        for other in _needed_by(path):
            add(other)
        order.append(path)

    for name in MODULES:
        add(name)
    return order


class _Archive:
    """An archive in the format of cpio that the kernel unpacks ("newc")."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.number = 0

    def add(self, name, mode, data=b""):
        self.number += 1
        encoded = name.encode() + b"\0"
        fields = (self.number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        self._padded(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded)
        self._padded(data)

    def _padded(self, data):
        self.file.write(data + b"\0" * (-len(data) % 4))

    def close(self):
        self.add("TRAILER!!!", 0)
        self.file.close()


def unpacked(cache, package):
    """The directory of a package of Debian that is downloaded and not installed."""
    place = pathlib.Path(cache) / package
    if not place.exists():
        partial = pathlib.Path(cache) / f"{package}-unfinished"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            _command("apt-get", "download", package, cwd=partial)
            (archive,) = partial.glob("*.deb")
            _command("dpkg-deb", "-x", str(archive), str(partial))
        except subprocess.CalledProcessError as error:
            raise Unavailable(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from error
        archive.unlink()
        partial.rename(place)
    return place


class Machine:
    """Boots once for every run(). `cache` is a directory that may be there from earlier."""

    def __init__(self, cache):
        for program, package in (("qemu-system-x86_64", "qemu-system-x86"),
                                 ("busybox", "busybox-static"),
                                 ("apt-get", "apt"), ("dpkg-deb", "dpkg"), ("rdma", "iproute2")):
            if shutil.which(program) is None:
                raise Unavailable(
                    f"there is no {program} (package {package}; tools/install-packages fabric)")
        try:
            self.kernel, self.system = self._build(pathlib.Path(cache))
        except subprocess.CalledProcessError as error:
            raise Unavailable(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from error

    def _build(self, cache):
        package = _kernel_package()
        contents = hashlib.sha256(repr((package, MODULES, INIT)).encode()).hexdigest()
        place = cache / f"{package}-{contents[:12]}"
        kernel, system = place / "kernel", place / "system"
        if system.exists():
            return kernel, system
        shutil.rmtree(place, ignore_errors=True)
        unpacked = place / "unpacked"
        unpacked.mkdir(parents=True)
        _command("apt-get", "download", package, cwd=place)
        (archive,) = place.glob("*.deb")
        _command("dpkg-deb", "-x", str(archive), str(unpacked))
        archive.unlink()
        (found,) = (unpacked / "boot").glob("vmlinuz-*")
        shutil.copy(found, kernel)
        modules = _in_order({path.stem.replace("-", "_"): path for path in unpacked.rglob("*.ko")})
        self._pack(place / "unfinished", modules)
        shutil.rmtree(unpacked)
        (place / "unfinished").rename(system)
        return kernel, system

    def _pack(self, path, modules):
        archive = _Archive(path)
        for directory in ("bin", "proc", "sys", "dev", "lower", "memory", "root", "modules"):
            archive.add(directory, 0o040755)
        archive.add("bin/busybox", 0o100755, pathlib.Path(shutil.which("busybox")).read_bytes())
        archive.add("init", 0o100755, INIT.encode())
        archive.add("modules/order", 0o100644,
                    "".join(f"{path.stem}\n" for path in modules).encode())
        for module in modules:
            archive.add(f"modules/{module.stem}.ko", 0o100644, module.read_bytes())
        archive.close()

    def run(self, share, limit_s, clock_counts=False):
        """Boots, runs the file `script` in the directory `share`, and returns its exit
        status and what it wrote.

        The machine sees `share` as /run/share. With `clock_counts` it has one processor, and its
        clock counts the instructions of that: it advances by a nanosecond for each, and stands
        still for whatever else this computer does. Raises subprocess.TimeoutExpired if all that
        takes longer than `limit_s`.
        """
        share = pathlib.Path(share)
        processors = (["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-smp", "1"]
                      if clock_counts else
                      ["-accel", "tcg,thread=multi", "-smp", str(PROCESSORS)])
        words = ["qemu-system-x86_64", *processors, "-cpu", "max", "-m", str(MEMORY_MIB),
                 "-nodefaults", "-no-reboot", "-display", "none",
                 "-serial", f"file:{share / 'console'}",
                 "-kernel", str(self.kernel), "-initrd", str(self.system),
                 "-append", "console=ttyS0 panic=-1 quiet mitigations=off no_timer_check",
                 "-virtfs",
                 "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
                 "-virtfs",
                 f"local,path={share},mount_tag=share,security_model=none,multidevs=remap"]
        subprocess.run(words, check=True, timeout=limit_s, stdin=subprocess.DEVNULL)
        output, status = share / "output", share / "status"
        console = (share / "console").read_text(errors="replace")
        if not status.exists():
            return None, console
        return int(status.read_text()), output.read_text(errors="replace")
