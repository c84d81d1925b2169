"""The import closure of files, by reading them: nothing is imported, so what only a function imports counts as well.

Vocabulary: a file *uses* another when it imports it (at its top, in a function, by ``import_module``, as a program that is named in a
string), or when it takes a fixture of a ``conftest.py``. A *closure* is what files use, and what that uses. A file's *distance* from a
change is how many of such steps lie between. Data (CRDs, pages, JSON, Go) uses nothing; who names it, or its folder, uses it.

Files are named by their way from the tree's top, as in ``kubectl_reconcile/core/phrases.py``.
"""

from __future__ import annotations

import ast
import functools
import posixpath
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

TREE = Path(__file__).parents[1]

BY_NAME = {
    "kubectl_reconcile/cli/root.py": ("kubectl_reconcile/cli/verbs/",),
    "kubectl_reconcile/cli/early.py": ("kubectl_reconcile/cli/",),
    "kubectl_reconcile/engine/modules/registry.py": ("kubectl_reconcile/modules/", "kubectl_reconcile_operators/"),
}
"""Files that import what they know the name of only when they run, and the folders that it is in."""
PROGRAMS = {"kubectl-reconcile": "kubectl_reconcile/cli/main.py"}
"""Commands of ours, which tests run, and the files that they begin with."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Said:
    """What the text of one file says.

    *imports* are names of modules and of what is taken from them, of those *computed* are completed when it runs; *fixtures* are
    arguments of functions and strings of ``usefixtures``; *functions* are names of functions, and names that fixtures get instead.
    """

    imports: set[str]
    computed: set[str]
    fixtures: set[str]
    functions: list[str] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)

    @property
    def programs(self) -> set[str]:
        """What may name a module that is run as a program."""
        return {text for text in self.texts if "." in text and all(part.isidentifier() for part in text.split("."))}

    @property
    def tests(self) -> int:
        """How many functions are tests."""
        return sum(name.startswith("test_") for name in self.functions)

    @property
    def is_open(self) -> bool:
        """Whether it imports modules of ours that its text doesn't name."""
        return any(name == "?" or name.startswith("kubectl_reconcile") for name in self.computed)


def said(text: str, file: str) -> Said:
    """What *text* says, which is that of *file*."""
    found = Said(set(), set(), set())
    for node in ast.walk(ast.parse(text, file)):
        if isinstance(node, ast.Import):
            found.imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, file)
            found.imports.update(f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, _FUNCTIONS):
            taken = node.args
            found.fixtures.update(one.arg for one in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs))
            found.functions.append(node.name)
        elif isinstance(node, ast.Call):
            _hear_call(node, found)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.texts.add(node.value)
    return found


def _hear_call(node: ast.Call, found: Said) -> None:
    """Add to *found* what a call says: of import_module, and of pytest's ways to name fixtures."""
    called = ast.unparse(node.func).rpartition(".")[2]
    names = {name for name in map(_beginning, node.args) if name}
    if called == "import_module":
        found.imports.update(names)
        if not any(isinstance(one, ast.Constant) for one in node.args):
            found.computed.update(names or {"?"})
    elif called in {"usefixtures", "getfixturevalue"}:
        found.fixtures.update(names)
    elif called == "fixture":
        found.functions.extend(_beginning(one.value) for one in node.keywords if one.arg == "name")


def _origin(node: ast.ImportFrom, file: str) -> str:
    """The module from which *node* takes names, without the dots of a relative one."""
    if not node.level:
        return node.module or ""
    package = file.split("/")[: -node.level]
    return ".".join([*package, *filter(None, [node.module])])


def _beginning(node: ast.AST) -> str:
    """The text of a string, of one with values in it what stands before the first; nothing where there is none."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return _beginning(node.values[0]).rstrip(".")
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


class Tree:
    """The Python files below a folder, and what each uses."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._said = {file: said(text, file) for file, text in texts.items()}

    @classmethod
    def at(cls, root: Path = TREE, under: Iterable[str] = ()) -> Tree:
        """The files of a work tree, those that git doesn't know yet among them, but not those that it ignores."""
        names = [name for name in files_of(root, *under) if name.endswith(".py")]
        return cls({name: (root / name).read_text(encoding="utf-8") for name in names})

    @property
    def files(self) -> AbstractSet[str]:
        return self._said.keys()

    def tests_in(self, file: str) -> int:
        """How many functions of *file* are tests."""
        return self._said[file].tests

    @functools.cached_property
    def uses(self) -> Mapping[str, AbstractSet[str]]:
        """What each file uses, without steps between."""
        return {file: frozenset(self._used_by(file)) - {file} for file in self._said}

    @functools.cached_property
    def _used_from(self) -> Mapping[str, AbstractSet[str]]:
        users: dict[str, set[str]] = {}
        for file, used in self.uses.items():
            for one in used:
                users.setdefault(one, set()).add(file)
        return users

    def _used_by(self, file: str) -> Iterator[str]:
        here = self._said[file]
        for name in here.imports:
            yield from self._files_of(name, file)
        for name in here.programs:
            if self._module(name, ""):
                yield from self._files_of(name, file)
                yield from self._files_of(f"{name}.__main__", file)
        for folder in BY_NAME.get(file, ()):
            yield from (each for each in self._said if each.startswith(folder))
        if not file.startswith("kubectl_reconcile"):
            yield from (main for program, main in PROGRAMS.items() if program in here.texts and main in self._said)
        for folder in _above(file):
            conftest = posixpath.join(folder, "conftest.py")
            if conftest in self._said and not here.fixtures.isdisjoint(self._said[conftest].functions):
                yield conftest

    def _files_of(self, name: str, importer: str) -> Iterator[str]:
        """The files that run when *importer* imports *name*: its packages, and the module itself where it isn't a name in one."""
        for folder in ("", *self._beside(name, importer)):
            if found := [
                module
                for end in range(1, name.count(".") + 2)
                if (module := self._module(".".join(name.split(".")[:end]), folder))
            ]:
                yield from found
                return

    def _beside(self, name: str, importer: str) -> Iterator[str]:
        """The folders besides the tree's top where *importer* finds *name*: those above a test, and its own where it runs as a program."""
        if importer.startswith("tests/"):
            yield from _above(importer)
            return
        folder, top = posixpath.dirname(importer), name.partition(".")[0]
        if f"{folder}/{top}.py" in self._said and top not in sys.stdlib_module_names:
            yield folder

    def _module(self, name: str, folder: str) -> str:
        stem = posixpath.join(folder, name.replace(".", "/"))
        return next((each for each in (f"{stem}/__init__.py", f"{stem}.py") if each in self._said), "")

    def closure(self, files: Iterable[str], *, within: tuple[str, ...] = ("",)) -> set[str]:
        """*files* and what they use, however many steps away, of what lies in a folder of *within*."""
        found, waiting = set(), [file for file in files if file in self._said]
        while waiting:
            file = waiting.pop()
            if file not in found and file.startswith(within):
                found.add(file)
                waiting.extend(self.uses[file])
        return found

    def foreign(self, files: Iterable[str]) -> set[str]:
        """The top names of the packages of others that *files* import: neither ours nor Python's own."""
        files = set(files)
        tops = {name.partition(".")[0] for file in files for name in self._said[file].imports}
        ours = {file.partition("/")[0].removesuffix(".py") for file in self._said}
        beside = {posixpath.basename(file).removesuffix(".py") for one in files for file in self.uses[one]}
        return {name for name in tops - ours - beside - sys.stdlib_module_names if name}

    def distances(self, changed: Iterable[str]) -> dict[str, int]:
        """How far each file is from the nearest of *changed*; files that don't use any of them are left out."""
        found: dict[str, int] = {}
        nearest = set(changed)
        beside = {file for one in nearest for file in self._below(one) | self.readers(one)}
        steps = 0
        while nearest:
            found |= dict.fromkeys(nearest, steps)
            steps += 1
            nearest = ({user for file in nearest for user in self._used_from.get(file, ())} | beside) - found.keys()
            beside = set()
        return {file: far for file, far in found.items() if file in self._said}

    def _below(self, file: str) -> AbstractSet[str]:
        """Who may use the file without naming it, where it is a ``conftest.py``: all below it."""
        folder, _, name = file.rpartition("/")
        return {each for each in self._said if name == "conftest.py" and each.startswith(f"{folder}/")}

    def readers(self, data: str) -> set[str]:
        """The files that name *data* or the folder that it is in; where none does, those of the package that it is part of. Python isn't data."""
        if data.endswith(".py"):
            return set()
        name, folder = posixpath.basename(data), posixpath.dirname(data)
        folders = {folder, posixpath.basename(folder), data.partition("/")[0]} - {"", name}
        named = {
            file
            for file, here in self._said.items()
            if any(text.rpartition("/")[2] == name or text.strip("/") in folders for text in here.texts)
        }
        if not named:
            home = next((above for above in _above(data) if f"{above}/__init__.py" in self._said), "")
            named = {file for file in self._said if home and posixpath.dirname(file) == home}
        return named


def _above(file: str) -> Iterator[str]:
    """The folders that *file* is in, the nearest first, without the top of the tree."""
    while file := posixpath.dirname(file):
        yield file


def files_of(root: Path, *patterns: str) -> list[str]:
    """The files of the work tree at *root*, those that git doesn't know yet among them; of *patterns* as git understands them."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({name for name in names if name and (root / name).is_file()})
