"""What the flags about a chart say: its pin, and its values, read from files of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kubectl_reconcile.cli.options.origin import Origin
from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.rendering.given_values import GivenValueError, merged
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.helm import HelmSpec, HelmSpecError


def values_given(files: Iterable[str], sets: Iterable[str]) -> dict[str, Any]:
    """Return the values for a chart that ``--values`` and ``--set`` give.

    Raises:
        Failure: a file can't be read, or isn't a map; or what is set can't be meant so.
    """
    try:
        found = merged([_values_in(file) for file in files], sets)
        HelmSpec.of({"values": found})
    except GivenValueError as error:
        raise Failure(f"--set: {error}", status=ExitStatus.USAGE) from None
    except HelmSpecError as error:
        raise Failure(f"--values: {error.message}", status=ExitStatus.USAGE) from None
    return found


def pin_of(origin: Origin) -> ChartSpec:
    """Return the chart that ``--chart`` and the flags beside it name.

    Raises:
        SyncSpecError: it can't be meant so.
    """
    asked = {"repository": origin.repo, "name": origin.chart, "version": origin.version, "digest": origin.digest}
    return ChartSpec.of(asked, "--chart")


def _values_in(file: str) -> Mapping[str, Any]:
    try:
        documents, problems = yaml_reader.read(Path(file).read_bytes(), file)
    except OSError as error:
        raise Failure(f"{file} can't be read: {error.strerror}", status=ExitStatus.SOURCE) from None
    if wrong := next((each for each in problems if each.is_error), None):
        raise Failure(str(wrong), wrong.hint, status=ExitStatus.SOURCE)
    trees = [each.tree for each in documents if each.tree is not None]
    if len(trees) > 1 or not all(isinstance(each, Mapping) for each in trees):
        raise Failure(f"{file} isn't a map of values", status=ExitStatus.SOURCE)
    return trees[0] if trees else {}
