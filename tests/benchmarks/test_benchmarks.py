"""The benchmarks' own parts that need no cluster: the same seed gives the same files, and ratios are what they say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks import races, results, scale, workloads
from benchmarks.arena import Run
from benchmarks.fleet import Shape
from tests import yaml_text


def made(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("workload", workloads.WORKLOADS)
def test_the_same_seed_gives_the_same_files(workload, tmp_path):
    one, other = (workloads.write(tmp_path / name, workload, 20, "ns", seed=7) for name in ("one", "other"))
    assert made(one) == made(other)
    assert len(made(one)) == 20


def test_just_the_share_that_is_asked_for_changes(tmp_path):
    plain = made(workloads.write(tmp_path / "plain", "mixed", 300, "ns", seed=7))
    changed = made(workloads.write(tmp_path / "changed", "mixed", 300, "ns", seed=7, changed=3))
    assert sum(plain[name] != changed[name] for name in plain) == 3


def test_half_of_the_files_are_those_of_the_whole(tmp_path):
    plain = made(workloads.write(tmp_path / "plain", "built-in", 30, "ns", seed=7))
    half = made(workloads.write(tmp_path / "half", "built-in", 30, "ns", seed=7, kept=15))
    assert len(half) == 15
    assert half.items() <= plain.items()


def test_a_large_cr_has_36_kilobytes(tmp_path):
    (text,) = made(workloads.write(tmp_path / "large", "large", 1, "ns", seed=7)).values()
    assert 36_000 <= len(json.dumps(json.loads(text))) <= 40_000


def test_each_command_of_each_contestant_can_be_filled_in(tmp_path):
    for name, commands in yaml_text.document((results.HERE / "contestants.yaml").read_text()).items():
        stand = races.Stand(races.Contestant(name, commands), "ns", {"plain": tmp_path})
        assert all(str(tmp_path) in stand.command(task, "plain") for task in commands.keys() - {"most"})


def run(seconds):
    return Run(seconds, 1.0, 1.0, 50.0, {"GET": 3})


def entry(who, *seconds):
    return results.Entry("mixed", 100, "first sync", who, [run(each) for each in seconds])


def test_a_ratio_is_the_median_of_those_lap_by_lap():
    assert entry("ours", 1, 2, 9).ratio_to(entry("kubectl", 2, 8, 9)) == 0.5


def test_the_table_compares_everybody_with_us():
    ours, theirs = results.table([entry("ours", 1.0), entry("kubectl", 4.0)])[2:]
    assert "| 0.25 |" in theirs
    assert "GET 3" in theirs
    assert "| ours | 1.00 |" in ours


def test_results_are_written_for_people_and_programs_with_a_plot_only_where_sizes_differ(tmp_path):
    results.Findings([entry("ours", 1.0)], {"each step": {"merge, us": 18.0}}).write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "results.md"}
    assert json.loads((tmp_path / "results.json").read_text())["entries"][0]["runs"][0]["seconds"] == 1.0
    assert "- merge, us: 18" in (tmp_path / "results.md").read_text()


def test_a_run_in_parts_keeps_what_was_found_and_replaces_what_is_run_again(tmp_path):
    other = replace(entry("ours", 3.0), workload="large", count=1000)
    results.Findings([entry("ours", 1.0), entry("kubectl", 4.0), other], {"each step": {"merge, us": 18.0}}).write(
        tmp_path
    )
    found = results.Findings.read(tmp_path)
    found.races([entry("ours", 2.0)])
    assert [(each.count, each.contestant, each.seconds) for each in found.entries] == [
        (100, "ours", 2.0),
        (1000, "ours", 3.0),
    ]
    assert found.more == {"each step": {"merge, us": 18.0}}
    assert results.Findings.read(tmp_path / "nowhere") == results.Findings()


def test_growth_is_told_as_a_line_and_as_a_power_of_what_grows_alone():
    figures = {Shape(n, objects): {"memory": 80.0 + n * objects / 10} for n, objects in ((100, 4), (300, 4), (100, 12))}
    grows = scale.growth(figures, "syncs")["memory"]
    assert (round(grows.base), round(grows.per_thousand)) == (80, 400)
    assert 0 < grows.exponent < 1
    assert scale.growth(figures, "repositories") == {}


def test_what_grows_as_its_number_does_has_the_exponent_one():
    assert round(scale.fitted([100, 300, 1000], [1.0, 3.0, 10.0]).exponent, 3) == 1.0
