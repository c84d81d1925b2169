"""A kind of contract that import-linter lacks: an allow-list of what a package may import."""

from __future__ import annotations

from importlinter import Contract, ContractCheck, fields, output


class AllowList(Contract):
    """Modules of *source_modules* import one another's package, what is on *allowed_modules*, and nothing else.

    Packages outside the product count as a whole: ``collections`` allows ``collections.abc``. *except_modules* aren't looked at; what is in
    one of *own_packages* may import what is in the same.
    """

    source_modules = fields.ListField(subfield=fields.StringField())
    allowed_modules = fields.SetField(subfield=fields.StringField())
    except_modules = fields.SetField(subfield=fields.StringField(), required=False, default=frozenset())
    own_packages = fields.SetField(subfield=fields.StringField(), required=False, default=frozenset())

    def check(self, graph, verbose):
        faults = sorted(
            (each, imported, detail["line_number"], detail["line_contents"])
            for source in self.source_modules
            for each in ({source} | graph.find_descendants(source)) - set(self.except_modules)
            for imported in graph.find_modules_directly_imported_by(each) - self.allowed_modules
            if imported not in self.source_modules and not self._is_own(each, imported)
            for detail in graph.get_import_details(importer=each, imported=imported)
        )
        return ContractCheck(kept=not faults, metadata={"faults": faults})

    def _is_own(self, each, imported):
        return any(all(f"{one}.".startswith(f"{own}.") for one in (each, imported)) for own in self.own_packages)

    def render_broken_contract(self, check):
        for each, imported, line, contents in check.metadata["faults"]:
            output.print_error(f"{each}:{line} imports {imported}, which isn't on the list: {contents}", bold=False)
