"""The pages about plan files and the module API leave nothing out."""

import re

from kubectl_reconcile import module_api, module_testing
from kubectl_reconcile.cli.reference_formats import module_api_page, plan_fields_page


def test_each_name_that_modules_may_import_is_there_once():
    exported = [f"{where.__name__}.{name}" for where in (module_api, module_testing) for name in vars(where)["__all__"]]
    assert sorted(re.findall(r"^::: (\S+)$", module_api_page(), re.MULTILINE)) == sorted(exported)


def test_no_heading_of_the_module_api_is_without_names():
    assert re.findall(r"^## .*\n\n(?!:::)", module_api_page(), re.MULTILINE) == []


def test_each_field_of_a_plan_file_has_a_type_and_a_meaning():
    rows = [line.split(" | ") for line in plan_fields_page().splitlines() if line.startswith(("| `", "| **"))]
    assert len(rows) > 80
    assert [row for row in rows if len(row) != 3 or not row[1] or not row[2].strip(" |")] == []
