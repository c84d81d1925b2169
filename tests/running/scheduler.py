"""A scheduler of pytest-xdist that deals units out as ``dealing`` says.

Vocabulary: *pause* is an item behind all tests, which does nothing. A worker of xdist begins a test only once it knows the one after
that, so each unit is followed by the pause: whoever has nothing else is free, and no test stands behind a long one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from xdist.report import report_collection_diff
from xdist.workermanage import WorkerController, parse_tx_spec_config

from tests.running.dealing import Dealer, Dealt, Unit


class Dealing:
    """What xdist asks of a scheduler; *prepare* says how all tests are dealt, once it is known which there are; *look*, whether anything has changed for them."""

    def __init__(
        self,
        config: pytest.Config,
        prepare: Callable[[str, Sequence[str]], Dealer],
        look: Callable[[Dealer], None] = lambda _: None,
    ) -> None:
        self.config, self.prepare, self.look = config, prepare, look
        self.numnodes = len(parse_tx_spec_config(config))
        self.collections: dict[WorkerController, list[str]] = {}
        self.pending: dict[WorkerController, list[int]] = {}
        self.units: dict[WorkerController, Unit] = {}
        self.collection: list[str] | None = None
        self.dealer = Dealer([], 1)
        self.tests: dict[int, Dealt] = {}

    # -- what is there ---------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[WorkerController]:
        return list(self.pending)

    @property
    def collection_is_completed(self) -> bool:
        return len(self.collections) >= self.numnodes

    @property
    def has_pending(self) -> bool:
        return bool(self.dealer.left) or not all(map(self._is_free, self.pending))

    @property
    def tests_finished(self) -> bool:
        return self.collection_is_completed and not self.has_pending

    def _is_free(self, node: WorkerController) -> bool:
        return all(index == self._pause for index in self.pending[node])

    @property
    def _pause(self) -> int:
        return len(self.collection or ())

    # -- what happens ----------------------------------------------------------------------------------------------

    def add_node(self, node: WorkerController) -> None:
        self.pending[node] = []

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        self.collections[node] = list(collection)

    def schedule(self) -> None:
        """Begin to deal; or go on, where somebody joins later."""
        if self.collection is None:
            (first, self.collection), *others = self.collections.items()
            for node, collection in others:
                if difference := report_collection_diff(self.collection, collection, first.gateway.id, node.gateway.id):
                    self.collection = []  # nothing is run
                    report = pytest.CollectReport(node.gateway.id, "failed", difference, [])
                    self.config.hook.pytest_collectreport(report=report)
                    return
            self.dealer = self.prepare(first.gateway.id, self.collection)
            self.tests = {test.index: test for unit in self.dealer.left for test in unit.tests}
            self.look(self.dealer)
        self.deal()

    def deal(self) -> None:
        """Give those who are free something to do, as far as there is anything."""
        for node in self.pending:
            if node.shutting_down or not self._is_free(node):
                continue
            others = [unit for other, unit in self.units.items() if other is not node and not self._is_free(other)]
            unit = self.dealer.next_for(others)
            if unit is None:
                break
            self.units[node] = unit
            indices = [*(test.index for test in unit.tests), self._pause]
            self.pending[node] += indices
            node.send_runtest_some(indices)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        self.pending[node].remove(item_index)
        if self._is_free(node):
            self.deal()

    def mark_test_pending(self, item: str) -> None:
        assert self.collection is not None
        self.dealer.put_back([self.tests[self.collection.index(item)]])
        self.deal()

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Nobody is asked to give back tests; it is how the scheduler hears that something else has changed."""
        if self.collection is not None:
            self.look(self.dealer)
            self.deal()

    def remove_node(self, node: WorkerController) -> str | None:
        """Test during which a worker ended, if it was at work; others get what it had left."""
        pending = [index for index in self.pending.pop(node) if index != self._pause or not self.collection]
        self.units.pop(node, None)
        if not pending or self.collection is None:
            return None
        crashed, *rest = pending
        self.dealer.put_back([self.tests[index] for index in rest])
        self.deal()
        return self.collection[crashed]
