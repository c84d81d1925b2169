"""The first process of a container, run as a script: makes its file system and becomes its command.

Called with the descriptors of a specification (JSON) and of a pipe. Into the pipe goes one line ``pid N`` once the container's first
process is there, and a line ``error …`` if its command could not be run; its end without one means that the command runs. What was
started stays beside it to pass the exit status on, 128 + N for one that signal N has ended.

Two kinds of specification: ``start`` makes a container in the namespaces of its pod, ``enter`` runs a command in one that runs.

Imports next to nothing: each container pays for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import termios
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernel  # type: ignore[import-not-found] # it stands beside this script, which is run without the package

SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "opt", "nix", "gnu")
"""Folders of the machine that every container sees, and can't write to."""
_EMPTY = (
    "dev",
    "proc",
    "sys",
    "run",
    "run/lock",
    "var",
    "var/lib",
    "var/log",
    "var/cache",
    "home",
    "root",
    "mnt",
    "srv",
    "etc",
)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_MOST_LINKS = 40
_HOST_ETC = ".machine/etc"


def main(specification: int, report: int) -> None:
    """Do what the specification says, and end as what it started has ended."""
    with open(specification, closefd=False) as file:
        spec: dict[str, Any] = json.load(file)
    kernel.die_with_parent()
    os.set_inheritable(report, False)
    os.close(specification)
    try:
        (_join_pod if "root" in spec else _join_container)(spec)
        child = os.fork()
    except OSError as error:
        _fail(report, error)
    if child == 0:
        _first_process(spec, report)
    # Where nobody waits for a command that joins a container any more, its end is still seen here: the container couldn't end before.
    with contextlib.suppress(*(() if "root" in spec else (BrokenPipeError,))):
        os.write(report, f"pid {child}\n".encode())
    os.close(report)
    quiet = os.open("/dev/null" if os.path.exists("/dev/null") else "/", os.O_RDONLY)
    for each in (0, 1, 2):  # so that a reader of the container's output sees its end
        os.dup2(quiet, each)
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _first_process(spec: dict[str, Any], report: int) -> None:
    try:
        if "root" in spec:
            _make_root(spec)
        os.setsid()
        if spec.get("tty"):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if "user" in spec:
            kernel.become(*spec["user"])
        kernel.limit_capabilities()
        kernel.die_with_parent()
        if "root" in spec:
            with contextlib.suppress(OSError):
                os.makedirs(spec["folder"], exist_ok=True)
        os.chdir(spec["folder"])
        os.umask(0o022)
        for signum in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(signum, signal.SIG_DFL)
        _execute(spec)
    except (OSError, ValueError) as error:
        _fail(report, error)


def _execute(spec: dict[str, Any]) -> None:
    """Become the command. Never returns.

    Raises:
        OSError, ValueError: it can't be executed.
    """
    try:
        os.execvpe(spec["argv"][0], spec["argv"], spec["environ"])
    except FileNotFoundError:
        raise OSError(f"{spec['argv'][0]}: there is no such program in the image") from None


def _fail(report: int, error: Exception) -> None:
    os.write(report, f"error {error}\n".encode())
    os._exit(128)


def _join_pod(spec: dict[str, Any]) -> None:
    for fd in spec["namespaces"]:
        kernel.setns(fd)
        os.close(fd)
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWPID)


def _join_container(spec: dict[str, Any]) -> None:
    process = os.pidfd_open(spec["pid"])
    others = kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWNS
    own = os.stat("/proc/self/ns/user").st_ino
    theirs = os.stat(f"/proc/{spec['pid']}/ns/user").st_ino
    kernel.setns(process, others)
    if own != theirs:  # it runs as another user; last, since whoever has joined that may join nothing else
        kernel.setns(process, kernel.CLONE_NEWUSER)
    os.close(process)


def _make_root(spec: dict[str, Any]) -> None:
    kernel.make_private()
    root = spec["root"]
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID, "mode=755")
    for name in SYSTEM:
        _show_system(name, root)
    for name in _EMPTY:
        os.makedirs(f"{root}/{name}", exist_ok=True)
    for name in ("tmp", "var/tmp"):
        os.mkdir(f"{root}/{name}")
        os.chmod(f"{root}/{name}", 0o1777)
    os.symlink("../run", f"{root}/var/run")
    kernel.mount("proc", f"{root}/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    _make_devices(f"{root}/dev")
    _make_etc(root, spec["files"])
    for folder in spec["empty"]:
        os.makedirs(f"{root}{folder}", exist_ok=True)
    for each in sorted(spec["mounts"], key=_depth_of):  # else a volume at /tmp would hide programs that are below it
        source = _part_of(each["source"], each["part"]) if each.get("part") else each["source"]
        _show(source, _place(root, each["target"]), read_only=each["readOnly"])
    kernel.change_root(root)


def _depth_of(mount: dict[str, Any]) -> int:
    return os.path.normpath(f"/{mount['target']}").count("/")


def _show_system(name: str, root: str) -> None:
    if os.path.islink(f"/{name}"):
        os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")
    elif os.path.isdir(f"/{name}"):
        os.mkdir(f"{root}/{name}")
        kernel.bind(f"/{name}", f"{root}/{name}", read_only=True)


def _make_devices(dev: str) -> None:
    for name in _DEVICES:
        os.close(os.open(f"{dev}/{name}", os.O_CREAT | os.O_WRONLY))
        kernel.bind(f"/dev/{name}", f"{dev}/{name}", read_only=False)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{dev}/{name}")
    for name in ("shm", "pts"):
        os.mkdir(f"{dev}/{name}")
    kernel.mount("tmpfs", f"{dev}/shm", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
    kernel.mount(
        "devpts", f"{dev}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"
    )
    os.symlink("pts/ptmx", f"{dev}/ptmx")


def _make_etc(root: str, files: dict[str, str]) -> None:
    """Fill /etc with the machine's entries, which can be replaced one by one, and the pod's own *files*."""
    os.makedirs(f"{root}/{_HOST_ETC}")
    kernel.bind("/etc", f"{root}/{_HOST_ETC}", read_only=True)
    for name in os.listdir("/etc"):
        own = f"/etc/{name}"
        target = os.readlink(own) if os.path.islink(own) else f"/{_HOST_ETC}/{name}"
        os.symlink(target, f"{root}/etc/{name}")
    for name, source in files.items():
        _show(source, f"{root}/etc/{name}", read_only=False)


def _place(root: str, target: str) -> str:
    """Return where *target* of the container is below *root*, as the container will see it: no link leads out of it.

    What a link of our own in /etc stands for is replaced by a mount at its place.
    """
    steps = [step for step in os.path.normpath(f"/{target}").split("/") if step]
    if not steps:
        raise OSError("nothing can be mounted at /")
    above = _followed(root, steps[:-1])
    return f"{above}/{steps[-1]}" if above == f"{root}/etc" else _followed(root, steps)


def _followed(root: str, steps: list[str]) -> str:
    """Return the place that *steps* lead to from *root*, which they never leave."""
    waiting, links = steps[::-1], 0
    place: list[str] = []
    while waiting:
        step = waiting.pop()
        path = "/".join([root, *place, step])
        if step == "..":
            place = place[:-1]
        elif os.path.islink(path):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(f"{'/'.join(['', *steps])}: too many links")
            link = os.readlink(path)
            place = [] if link.startswith("/") else place
            waiting += [one for one in reversed(link.split("/")) if one not in {"", "."}]
        else:
            place.append(step)
    return "/".join([root, *place])


def _part_of(volume: str, part: str) -> str:
    """Return a name for the folder or file *part* of a volume, which is made as a folder where it isn't there.

    What the name stands for is open by then, so that no program can put a link in its place that leads out of the volume.
    """
    top = os.path.realpath(volume)
    path = os.path.realpath(f"{top}/{part}")
    _check_within(top, path, part)
    if not os.path.exists(path):
        os.makedirs(path)
    name = f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_CLOEXEC)}"
    _check_within(top, os.readlink(name), part)
    return name


def _check_within(top: str, path: str, part: str) -> None:
    if os.path.commonpath([top, path]) != top:
        raise OSError(f"subPath {part} is outside its volume")


def _show(source: str, target: str, *, read_only: bool) -> None:
    if os.path.islink(target):
        os.unlink(target)
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.bind(source, target, read_only=read_only)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
