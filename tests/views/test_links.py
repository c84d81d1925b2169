"""Where commits and lines are shown: at hosts that are known, and nowhere else."""

import pytest

from kubectl_reconcile.views.links import commit_link, file_link

SHA = "3f9c2e1aa0"
LINKS = {
    "GitHub": ("https://github.com/team/shop.git", f"https://github.com/team/shop/blob/{SHA}/apps/web%20x.yaml#L7"),
    "over SSH": ("git@github.com:team/shop.git", f"https://github.com/team/shop/blob/{SHA}/apps/web%20x.yaml#L7"),
    "a GitLab of one's own, in groups": (
        "https://gitlab.example.com/a/b/shop", f"https://gitlab.example.com/a/b/shop/-/blob/{SHA}/apps/web%20x.yaml#L7"
    ),
    "Codeberg": ("ssh://git@codeberg.org/team/shop.git", f"https://codeberg.org/team/shop/src/commit/{SHA}/apps/web%20x.yaml#L7"),
    "credentials stay out": ("https://u:p@github.com/team/shop", f"https://github.com/team/shop/blob/{SHA}/apps/web%20x.yaml#L7"),
    "a host that nobody knows": ("https://git.example.com/team/shop.git", ""),
    "a script": ("javascript://github.com/%0aalert(1)", ""),
    "no encryption": ("http://github.com/team/shop", ""),
    "a host that only ends so": ("https://notgithub/team/shop", ""),
    "a file of this machine": ("file:///srv/shop.git", ""),
}  # fmt: skip


@pytest.mark.parametrize(("url", "expected"), LINKS.values(), ids=LINKS)
def test_a_line_of_a_file(url, expected):
    assert file_link(url, SHA, "apps/web x.yaml", 7) == expected


def test_a_commit():
    assert commit_link("https://gitlab.com/team/shop.git", SHA) == f"https://gitlab.com/team/shop/-/commit/{SHA}"


@pytest.mark.parametrize("sha", ["", "worktree-1", "main", '3f9c2e1" onclick=', "../../x"])
def test_what_is_no_commit_has_no_link(sha):
    assert commit_link("https://github.com/team/shop", sha) == ""
