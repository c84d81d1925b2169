"""Commands and what they print are found on a page, and what two runs never have in common is alike."""

import pytest

from tests.walks import alike, commands, is_told

PAGE = """# Title

```console
$ cat > a <<EOF
x
EOF
$ ls
a
b
```

1. A step:

    ```sh
    # what it is for
    kubectl get pods \\
      -A
    ```

```yaml
$: no
```
"""


def test_here_documents_and_what_is_printed_are_told_apart():
    assert [(each.line, each.text, each.printed) for each in commands("a.md", PAGE)] == [
        (4, "cat > a <<EOF\nx\nEOF\n", ""),
        (4, "ls", "a\nb\n"),
        (15, "kubectl get pods    -A", None),
    ]


SAME = {
    "durations": ("2 created in 2.1 s", "2 created in 812 ms"),
    "ages": ("web  54m  ready", "web  3s   ready"),
    "commits": ("at 330340d", "at 3f9c2e1"),
    "uids": ("uid: a7dfc542-66b5-489e-8bf9-2ffcd4e6e0b2", 'uid: "427eff44-c60b-4787-9986-86ecf7a4bcc8"'),
    "names of pods": ("Pod/web-8448b6f544-7hvhn", "Pod/web-5f6bb9879-s6j42"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_what_two_runs_never_have_in_common_is_alike(one, other):
    assert alike(one) == alike(other)


def test_a_page_tells_all_that_is_printed_or_says_where_it_leaves_something_out():
    assert is_told("a\nb\n", "a\nb\n", "warning\n")
    assert is_told("a\nwarning\nb\n", "a\nb\n", "warning\n")
    assert is_told("…\nb\n", "a\nb\n", "")
    assert not is_told("a\n", "a\nb\n", "")
    assert not is_told("a\nb\nc\n", "a\nb\n", "warning\n")
