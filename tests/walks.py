"""What a reader types who walks through a page: its command blocks in order, and what the page says that each command prints.

A *block* is fenced as ``console`` (commands after ``$``, and what they print) or as ``sh`` (commands alone). What two runs never have in common (times, commits, names that are
made up, uids) is alike; ``…`` on a page stands for anything.

`NOT_RUN` names the commands that no test types, each with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.pages import ROOT, navigation

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>console|sh)\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)

INSTALLS = "it installs for the whole cluster; tests/e2e/cli/test_install.py does so on one of its own"
NO_ENGINE = "there is no container engine; tests/e2e/cli/test_image.py carries out the steps of the Dockerfile"
OWN_SANDBOX = "the test's sandbox runs already; tests/sandbox starts and stops others"
PODS = "the operand has to run in its pods; tests/operators/real does that"
CHART = "the sandbox has no Helm; tests/e2e/source/test_our_own_chart.py renders the chart and compares it with install"
CHARTS = "nobody serves that chart; tests/e2e/cli/test_chart_flags.py follows one of a server of its own"
WITHOUT_END = "it serves until Ctrl-C; tests/web/test_ui_command.py starts and stops it"
TUTORIAL = "tests/e2e/modules/test_tutorial.py runs the whole tutorial"
INSTALLED = "tests/e2e/cli/test_packaging.py installs what is built"
SIGNS = "the program isn't there; tests/e2e/daemon/test_registries.py applies what is signed, as the real one does it"
ENCRYPTS = "the program isn't there; tests/e2e/daemon/test_sops.py takes the same steps with files of the real one"
THERE = "the test has a namespace of its own"
SANDBOX = {
    "kubectl reconcile sandbox up": OWN_SANDBOX,
    'eval "$(kubectl reconcile sandbox env)"': OWN_SANDBOX,
    "kubectl reconcile sandbox down": OWN_SANDBOX,
}

NOT_RUN: dict[str, dict[str, str]] = {
    "README.md": {
        **{begin: why for begin, why in SANDBOX.items() if not begin.endswith("down")},
        "make demo": "it takes a minute; tests/e2e/cli/test_docs.py plays it",
        "make test": "it is what runs this",
        "pip install .": INSTALLED,
        "kubectl reconcile daemon &": "the scene starts one",
    },
    "docs/quick-start.md": {
        **SANDBOX,
        "pip install .": INSTALLED,
        "kubectl create namespace hello": THERE,
        "kubectl config set-context": THERE,
        "kubectl delete namespace hello": THERE,
        "kubectl reconcile install": INSTALLS,
    },
    "docs/ui.md": {
        "kubectl reconcile ui": WITHOUT_END,
        "kubectl reconcile install": INSTALLS,
        "kubectl port-forward": INSTALLS,
    },
    "docs/upgrading.md": {
        "kubectl diff --server-side": INSTALLS,
        "kubectl reconcile install --image registry.example.com/reconcile:0.2.0": INSTALLS,
        "kubectl apply --server-side": CHART,
        "helm upgrade": CHART,
    },
    "docs/oci.md": {"cosign": SIGNS, "kubectl create secret": SIGNS},
    "docs/sops.md": {
        "age-keygen": ENCRYPTS,
        "sops encrypt": ENCRYPTS,
        "kubectl create secret": ENCRYPTS,
        "kubectl annotate secret": ENCRYPTS,
        "kubectl reconcile diff": ENCRYPTS,
    },
    "docs/pull-requests.md": {
        "git fetch": "there is no pull request; tests/cli/test_between_revisions.py compares revisions of a working tree",
        "kubectl reconcile diff -f clusters/prod": "the same",
    },
    "docs/disaster-recovery.md": {"kubectl reconcile install": INSTALLS},
    "docs/migrating.md": {
        "helm get": CHART,
        "kubectl reconcile create web": CHARTS,
        "kubectl reconcile diff web": CHARTS,
        "kubectl reconcile resume web": CHARTS,
    },
    "docs/operating.md": {
        "docker build": NO_ENGINE,
        "kubectl reconcile install": INSTALLS,
        "helm install": CHART,
    },
    "docs/modules.md": {"": TUTORIAL},
    "docs/etcd.md": {
        **{
            f"kubectl {words}": PODS
            for words in (
                "reconcile sync",
                "get",
                "reconcile approve",
                "annotate",
                "reconcile diff -f examples/etcd-restore.yaml",
            )
        },
        "etcdctl": PODS,
        "etcdutl": PODS,
        "etcd ": PODS,
    },
    "docs/mydatabase.md": {f"kubectl {words}": PODS for words in ("reconcile sync", "get", "annotate")},
    "docs/kafka.md": {
        f"kubectl {words}": PODS
        for words in ("reconcile sync", "get", "reconcile approve", "reconcile diff -f examples/kafka-rebalance.yaml")
    },
    "docs/sandbox.md": SANDBOX,
    "docs/checkups.md": {
        "kubectl get checkup": "it shows days of checks; tests/e2e/modules/test_checkup.py looks at the columns",
    },
}
"""Page -> how a command begins -> why it isn't run."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a page. *printed* is None where the page doesn't say what is printed."""

    page: str
    line: int
    text: str
    printed: str | None

    @property
    def reason(self) -> str:
        """Why it isn't run, or nothing."""
        reasons = NOT_RUN.get(self.page, {})
        if "--dry-run" in self.text:
            return ""
        return next((why for begin, why in reasons.items() if self.text.startswith(begin)), "")


def pages() -> list[str]:
    """Return the pages that are walked: the README, that of the examples, the quick start and the guides."""
    names = navigation((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    guides = names[names.index("quick-start.md") : names.index("cli.md")]
    return ["README.md", "examples/README.md", *(f"docs/{name}" for name in guides)]


def commands(page: str, text: str) -> Iterator[Command]:
    """Yield the commands of a page, in order."""
    for block in _BLOCK.finditer(text):
        body = re.sub(f"^{block['indent']}", "", block["text"], flags=re.MULTILINE)
        line = text.count("\n", 0, block.start()) + 2
        found = _answered(body) if block["language"] == "console" else _alone(body)
        for command, printed in found:
            yield Command(page, line, command, printed)


def _answered(body: str) -> Iterator[tuple[str, str]]:
    """Yield what is typed after a prompt, and what is printed; the lines of a here-document belong to the command."""
    for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, printed = step.partition("\n")
        yield (step, "") if command.endswith("<<EOF") else (command, printed)


def _alone(body: str) -> Iterator[tuple[str, None]]:
    for line in body.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip(), None


def of(page: str) -> list[Command]:
    """Return the commands of a page of this repository."""
    return list(commands(page, (ROOT / page).read_text(encoding="utf-8")))


_ALIKE = (
    (r"\bin \d+(\.\d+)? m?s\b|\bin \d+ min\b", "in a moment"),
    (r'"?\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"?', "UID"),
    (r"\b[0-9a-f]{7}\b", "COMMIT"),
    (r"\b\d+(s|m|h|d)\d*m?\b", "AGE"),
    (r"-[a-z0-9]{8,10}-[a-z0-9]{5}\b", "-POD"),
    (r"(?<=ReplicaSet/)([\w-]+?)-[0-9a-z]{8,10}\b", r"\1-HASH"),
    (r"(?<=EndpointSlice/)([\w-]+?)-[0-9a-z]{5}\b", r"\1-HASH"),
    (r"@@ .* @@", "@@"),
    (r"[ \t]+", " "),
    (r" $", ""),
)


def alike(text: str) -> str:
    """Return what is printed but for what differs from run to run."""
    for pattern, word in _ALIKE:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text.strip()


def is_told(printed: str, out: str, err: str) -> bool:
    """Tell whether a page that says *printed* tells what was printed: all of the output, or, in any order, all lines of output and errors."""
    parts = (re.escape(part) for part in alike(printed).split("…"))
    if re.fullmatch(".*".join(parts), alike(out), re.DOTALL):
        return True
    return sorted(alike(printed).splitlines()) == sorted([*alike(out).splitlines(), *alike(err).splitlines()])


def without_a_reason(page: str) -> list[str]:
    """Return the entries of `NOT_RUN` that no command of a page begins with, or that give no reason."""
    texts = [each.text for each in of(page)]
    return [
        begin
        for begin, why in NOT_RUN.get(page, {}).items()
        if not why or not any(text.startswith(begin) for text in texts)
    ]


def exists(path: str, root: Path = ROOT) -> bool:
    """Tell whether a test that a reason names is there."""
    return (root / path).exists()
