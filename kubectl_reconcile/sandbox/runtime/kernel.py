"""The system calls of Linux that Python 3.11 doesn't have: namespaces and mounts.

Stands on the standard library's lightest parts alone, since each container's first process loads it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP = 1, 24
_MOST_CAPABILITIES = 64
_CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31})
"""Those that containers have by default elsewhere: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP,
NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD, AUDIT_WRITE, SETFCAP."""
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
_MOUNT_SETATTR = 442  # the same on every architecture, as all newer calls
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Give the calling thread namespaces of its own."""
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, flags: int = 0) -> None:
    """Join the namespace that *fd* is, or those of a process that *fd* is, by *flags*."""
    _check(_libc.setns(fd, flags), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount *source* at *target*."""
    what = f"mount {source} at {target}"
    _check(
        _libc.mount(
            source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
        ),
        what,
    )


def bind(source: str, target: str, *, read_only: bool) -> None:
    """Show *source*, with what is mounted below it, at *target*."""
    mount(source, target, flags=MS_BIND | MS_REC)
    if not read_only:
        return
    attributes = _MountAttr(attr_set=_MOUNT_ATTR_RDONLY)
    result = _libc.syscall(
        _MOUNT_SETATTR,
        _AT_FDCWD,
        target.encode(),
        _AT_RECURSIVE,
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _check(result, f"make {target} read-only (Linux 5.12 or newer is needed)")


def unmount(folder: str) -> None:
    """Take away what is mounted at *folder*, at the latest when nobody uses it any more."""
    _check(_libc.umount2(folder.encode(), MNT_DETACH), f"umount {folder}")


def make_private() -> None:
    """Keep what is mounted from now on to this mount namespace."""
    mount("none", "/", flags=MS_REC | MS_PRIVATE)


def change_root(folder: str) -> None:
    """Make the mount *folder* the root of this mount namespace, and release all else that was mounted."""
    os.chdir(folder)
    _check(_libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), f"pivot_root {folder}")
    _check(_libc.umount2(b".", MNT_DETACH), "umount the old root")
    os.chdir("/")


def become(uid: int, gid: int) -> None:
    """Enter a user namespace of its own, in which the caller is *uid* and *gid*."""
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {outer_uid} 1")
    _write("/proc/self/gid_map", f"{gid} {outer_gid} 1")


def die_with_parent(signum: int = 9) -> None:
    """Have the kernel send *signum* to this process once its parent has ended. Forgotten when the user changes."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signum), 0, 0, 0), "prctl")


def limit_capabilities() -> None:
    """Leave to what this process executes the capabilities of a container: it can't undo mounts or change its network."""
    for number in range(_MOST_CAPABILITIES):
        if number not in _CAPABILITIES and _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0) < 0:
            if ctypes.get_errno() == errno.EINVAL:  # the kernel has no more
                return
            _check(-1, f"prctl capability {number}")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
