"""Completion, by kubectl's protocol for plugins: the executable ``kubectl_complete-reconcile``.

It is called with the words typed after ``kubectl reconcile``, the last one partial, and prints one
candidate a line (a tab parts it from its description), then ``:`` and a *directive*, a sum of cobra's
bits. Verbs, flags and their choices come from click; nothing that talks to a cluster is imported. The scripts
of ``kubectl-reconcile completion`` speak the same protocol, by the hidden word ``__complete``.

Names in the cluster are asked from kubectl, which is there (it called us), knows every way of
authentication, and starts faster than we import a client. A shell waits for a fraction of a second: an answer that
takes longer is kept when it comes, for the next time somebody presses the key, and answers of the last minutes
stand in for it meanwhile. Whatever goes wrong, the answer is no candidates.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from enum import IntFlag
from itertools import pairwise
from pathlib import Path

import click

from kubectl_reconcile.cli.root import VERBS, command, reconcile
from kubectl_reconcile.views.text import is_clean

_BUDGET_S = 0.25
"""How long to wait for an answer. With what starting Python takes, the shell has its candidates within 0.3 s."""

_KEPT_S = 300.0
"""How long an answer stands in for one that is late."""

_ASKING = """umask 077
"$@" > "$0.$$" 2>/dev/null && mv -f "$0.$$" "$0" || rm -f "$0.$$"
find "${0%/*}" -type f -mmin +60 -exec rm -f {} + &"""
"""Has the answer appear in its file at once, or not at all, though nobody may be waiting any more; removes old ones."""


class Directive(IntFlag):
    """What the shell may do with the candidates; cobra's ``ShellCompDirective``."""

    DEFAULT = 0
    """Complete files where there is no candidate."""
    NO_SPACE = 2
    """Add no space after the candidate."""
    NO_FILES = 4
    """Don't complete files."""
    FOLDERS = 16
    """Complete folders only."""


_FILES = {
    "file": Directive.DEFAULT,
    "settings": Directive.DEFAULT,
    "values": Directive.DEFAULT,
    "kubeconfig": Directive.DEFAULT,
    "cache_dir": Directive.FOLDERS,
    "write": Directive.FOLDERS,
}
_FILES |= dict.fromkeys(("certificate_authority", "client_certificate", "client_key"), Directive.DEFAULT)
_PASSED_ON = ("kubeconfig", "context", "cluster", "user", "as_user", "server", "token", "namespace")
_GET_SYNCS = ("get", "syncs.reconcile.dev", "--output=name")
_QUESTIONS = {
    "namespace": ("get", "namespaces", "--output=name"),
    "target_namespace": ("get", "namespaces", "--output=name"),
    "into": ("get", "namespaces", "--output=name"),
    "context": ("config", "get-contexts", "--output=name"),
    "cluster": ("config", "get-clusters"),
    "user": ("config", "get-users"),
    "kept_under": _GET_SYNCS,
    "sync": _GET_SYNCS,
    "syncs": _GET_SYNCS,
    "secret": ("get", "secrets", "--output=name"),
}
"""The question to kubectl that finds values for a flag or an argument."""

_OF_PLANS = ("accept", "diff", "sync")
_OBJECTS = frozenset({("explain", "object_"), ("adopt", "objects"), *((verb, "objects") for verb in _OF_PLANS)})
"""Arguments that are KIND/NAME."""

_MAY_BE_OBJECTS = frozenset({("tree", "sync"), ("approve", "sync"), *((verb, "sync") for verb in _OF_PLANS)})
"""Arguments that are KIND/NAME where they have a slash."""

_SYNCS_SEEN = '{range .items[*]}{.metadata.namespace}/{.metadata.name}{"\\n"}{end}'

_HISTORY = '{range .status.history[*]}{.revision}{"\\t"}{.result}{", "}{.time}{"\\n"}{end}'
_REFS = {
    ("create", "branch"): "--heads",
    ("create", "tag"): "--tags",
    ("sync", "ref"): "--heads",
    ("diff", "ref"): "--heads",
    ("render", "ref"): "--heads",
}


def complete(words: Sequence[str]) -> tuple[list[str], Directive]:
    """Return the candidates for the last of *words*, and what to do with them."""
    *typed, partial = words or [""]
    chain = _chain(typed)
    flags = {
        name: flag
        for one in chain
        for flag in one.params
        if isinstance(flag, click.Option)
        for name in _spellings(flag)
    }
    if typed and (flag := flags.get(typed[-1])) and _takes_value(flag):
        return _values(flag, partial, typed, flags)
    if partial.startswith("-"):
        head, equals, rest = partial.partition("=")
        if equals and (flag := flags.get(head)):
            found, directive = _values(flag, rest, typed, flags)
            return [f"{head}={one}" for one in found], directive
        return _flags(chain[-1], partial), Directive.NO_FILES
    words_left = len(_positional(typed, flags)) - (len(chain) - 1)
    if isinstance(chain[-1], click.Group):
        return [] if words_left else _verbs(chain[-1], partial), Directive.NO_FILES
    argument = _argument(chain[-1], words_left)
    return _values(argument, partial, typed, flags) if argument else ([], Directive.NO_FILES)


def _argument(of: click.Command, number: int) -> click.Argument | None:
    """Return the argument at this place; the last one may take any number of words."""
    arguments = [param for param in of.params if isinstance(param, click.Argument)]
    if number < len(arguments):
        return arguments[number]
    return arguments[-1] if arguments and arguments[-1].nargs == -1 else None


def _chain(typed: Sequence[str]) -> list[click.Command]:
    """Return the commands that the words typed so far have gone through, the program first."""
    chain: list[click.Command] = [reconcile]
    skip = False
    for word in typed:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = "=" not in word and any(word in _spellings(flag) and _takes_value(flag) for flag in chain[-1].params)
        elif isinstance(chain[-1], click.Group):
            below = _below(chain[-1], word)
            if below is None:
                break
            chain.append(below)
    return chain


def _below(group: click.Group, word: str) -> click.Command | None:
    return command(word) if group is reconcile else group.commands.get(word)


def _spellings(flag: click.Parameter) -> list[str]:
    return [*flag.opts, *flag.secondary_opts] if isinstance(flag, click.Option) else []


def _takes_value(flag: click.Parameter) -> bool:
    return isinstance(flag, click.Option) and not flag.is_flag and not flag.count


def _positional(typed: Sequence[str], flags: dict[str, click.Option]) -> list[str]:
    valued = {name for name, flag in flags.items() if _takes_value(flag)}
    before = ["", *typed]
    return [word for last, word in pairwise(before) if not word.startswith("-") and last not in valued]


def _verbs(group: click.Group, partial: str) -> list[str]:
    if group is reconcile:
        return [f"{name}\t{verb.short}" for name, verb in VERBS.items() if name.startswith(partial)]
    below = sorted(group.commands.items())
    return [
        f"{name}\t{one.get_short_help_str(80)}" for name, one in below if name.startswith(partial) and not one.hidden
    ]


def _flags(of: click.Command, partial: str) -> list[str]:
    """Return the flags of a command; kubectl's rarer ones only where two dashes are typed."""
    found = {"--help": "Show how to use it."}
    for flag in of.params:
        if isinstance(flag, click.Option) and (not flag.hidden or partial.startswith("--")):
            found |= dict.fromkeys(_spellings(flag), (flag.help or "").split("  [")[0])
    return sorted(f"{name}\t{text}" for name, text in found.items() if name.startswith(partial))


def _values(
    param: click.Parameter, partial: str, typed: Sequence[str], flags: dict[str, click.Option]
) -> tuple[list[str], Directive]:
    name = param.name or ""
    if name in _FILES:
        return [], _FILES[name]
    if isinstance(param.type, click.Choice):
        return [str(one) for one in param.type.choices if str(one).startswith(partial)], Directive.NO_FILES
    verb = next((command.name for command in _chain(typed)[1:]), "") or ""
    asked = _from_cluster(verb, name, partial, typed, flags)
    if asked is not None:
        return asked
    context = click.Context(reconcile, resilient_parsing=True)
    return [item.value for item in param.shell_complete(context, partial)], Directive.NO_FILES


def _from_cluster(
    verb: str, name: str, partial: str, typed: Sequence[str], flags: dict[str, click.Option]
) -> tuple[list[str], Directive] | None:
    """Return the candidates that kubectl or git know of; None where they aren't asked."""
    given = _given(typed, flags)
    if (verb, name) in _OBJECTS or ((verb, name) in _MAY_BE_OBJECTS and "/" in partial):
        return _objects(partial, _for_objects(verb, typed, flags, given))
    if (verb, name) == ("adopt", "sync"):
        return _syncs(partial, given), Directive.NO_FILES
    if (verb, name) == ("rollback", "revision"):
        return _revisions(partial, _positional(typed, flags)[1:], given), Directive.NO_FILES
    if (verb, name) in _REFS:
        return _refs(
            _REFS[verb, name], partial, _value_of(typed, "--url") or _value_of(typed, "--repo")
        ), Directive.NO_FILES
    if question := _QUESTIONS.get(name):
        return _beginning(partial, map(_plain, _kubectl(*question, *given))), Directive.NO_FILES
    return None


def _objects(partial: str, given: Sequence[str]) -> tuple[list[str], Directive]:
    """Return kinds, each with a slash, or the objects of the kind that is typed already."""
    kind, slash, _ = partial.partition("/")
    if not slash:
        kinds = _kubectl("api-resources", "--cached", "--verbs=get", "--output=name", *_without_namespace(given))
        return [f"{name}/" for name in _beginning(partial, kinds)], Directive.NO_FILES
    if not kind or kind.startswith("-"):
        return [], Directive.NO_FILES
    names = _kubectl("get", kind, "--output=name", *given)
    return _beginning(partial, (f"{kind}/{_plain(name)}" for name in names)), Directive.NO_FILES


def _for_objects(verb: str, typed: Sequence[str], flags: dict[str, click.Option], given: list[str]) -> list[str]:
    """Return *given* with the namespace to which the objects of the Sync go that is typed already, if any."""
    if verb == "adopt":
        namespace, _, name = _value_of(typed, "--sync").rpartition("/")
    else:
        namespace, name = "", next(iter(_positional(typed, flags)[1:]), "") if verb in _OF_PLANS else ""
    if not name or "/" in name or name.startswith("-") or (namespace and _without_namespace(given) != given):
        return given  # -n says it
    where = [*_without_namespace(given), f"--namespace={namespace}"] if namespace else given
    target = _kubectl("get", "syncs.reconcile.dev", name, "--output=jsonpath={.spec.targetNamespace}", *where)
    return [*_without_namespace(where), f"--namespace={target[0]}"] if target and target[0] else where


def _syncs(partial: str, given: Sequence[str]) -> list[str]:
    """Return the Syncs of the namespace, and those of others as ``NAMESPACE/NAME``."""
    namespace, slash, _ = partial.partition("/")
    if slash:
        where = [*_without_namespace(given), f"--namespace={namespace}"]
        return _beginning(partial, (f"{namespace}/{_plain(name)}" for name in _kubectl(*_GET_SYNCS, *where)))
    everywhere = ("get", "syncs.reconcile.dev", "--all-namespaces", f"--output=jsonpath={_SYNCS_SEEN}")
    here = map(_plain, _kubectl(*_GET_SYNCS, *given))
    return _beginning(partial, [*here, *_kubectl(*everywhere, *_without_namespace(given))])


def _revisions(partial: str, syncs: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return what the Sync that is typed has applied, each revision with how that went and when."""
    if len(syncs) != 1 or syncs[0].startswith("-"):
        return []
    question = ("get", "syncs.reconcile.dev", syncs[0], f"--output=jsonpath={_HISTORY}", *given)
    found = {text.partition("\t")[0]: text.partition("\t")[2] for text in reversed(_kubectl(*question))}
    return [f"{name}\t{found[name]}" for name in _beginning(partial, found) if is_clean(found[name])]


def _refs(kind: str, partial: str, url: str) -> list[str]:
    """Return the branches or tags of the repository that is typed."""
    if not url or url.startswith("-"):
        return []
    listed = _answer(["git", "ls-remote", "--quiet", "--refs", kind, "--", url])
    return _beginning(partial, (text.partition("\t")[2].split("/", 2)[-1] for text in listed))


def _value_of(typed: Sequence[str], flag: str) -> str:
    pairs = [word.partition("=")[2] for word in typed if word.startswith(f"{flag}=")]
    return next(iter([*pairs, *(value for word, value in pairwise(typed) if word == flag)]), "")


def _given(typed: Sequence[str], flags: dict[str, click.Option]) -> list[str]:
    """Return the flags typed so far that say which cluster is meant, for kubectl."""
    wanted = {name: flag for name, flag in flags.items() if flag.name in _PASSED_ON}
    found = [f"{_long(wanted[word])}={value}" for word, value in pairwise(typed) if word in wanted]
    return found + [word for word in typed if word.partition("=")[0] in wanted and "=" in word]


def _long(flag: click.Option) -> str:
    return max(flag.opts, key=len)


def _without_namespace(given: Sequence[str]) -> list[str]:
    return [flag for flag in given if not flag.startswith(("--namespace=", "-n"))]


def _plain(name: str) -> str:
    """Return the name alone of what kubectl prints as ``deployment.apps/web``."""
    return name.rpartition("/")[2]


def _beginning(partial: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(partial) and name and is_clean(name)})


def _kubectl(*arguments: str) -> list[str]:
    return _answer(["kubectl", *arguments, "--request-timeout=5s"])


def _answer(command: Sequence[str]) -> list[str]:
    """Return the lines that *command* prints, or has printed in the last minutes if it is slow now."""
    file = _file_of(command)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:http:ssh:file"}
    process = subprocess.Popen(
        ["sh", "-c", _ASKING, str(file), *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True, env=environment,
    )  # fmt: skip
    try:
        process.wait(_BUDGET_S)
    except subprocess.TimeoutExpired:
        process.returncode = 0  # it goes on without us; nobody is to warn of that
    try:
        age_s = time.time() - file.stat().st_mtime
        return file.read_text(encoding="utf-8").splitlines() if age_s < _KEPT_S else []
    except (OSError, UnicodeDecodeError):
        return []


def _file_of(command: Sequence[str]) -> Path:
    """Return where the answer to *command* is kept: for each kubeconfig and folder its own."""
    facts = (*command, os.environ.get("KUBECONFIG", ""), os.environ.get("PATH", ""), str(Path.cwd()))
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()[:32]
    return Path(root, "kubectl-reconcile", "completion", digest)


def main(words: Sequence[str] | None = None) -> None:
    """Answer the shell about *words*, or those of this process. Failing must not disturb what the user is typing."""
    try:
        candidates, directive = complete(sys.argv[1:] if words is None else words)
        if candidates and all(candidate.endswith(("=", "/")) for candidate in candidates):
            directive |= Directive.NO_SPACE
    except Exception:  # noqa: BLE001 - see above
        candidates, directive = [], Directive.NO_FILES
    sys.stdout.write("".join(f"{candidate}\n" for candidate in candidates) + f":{int(directive)}\n")


if __name__ == "__main__":
    main()
