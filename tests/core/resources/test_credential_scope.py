"""For which repositories a Secret's credentials are: tables of what is one place and what isn't, and laws."""

from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.resources.credential_scope import Address, CredentialScope, NoAddressError
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.remote import Credentials, Repository, Scheme

COVERED = {
    "the same URL": ("https://git.example.com/a/b.git", "https://git.example.com/a/b.git"),
    "a repository below": ("https://git.example.com/a", "https://git.example.com/a/b.git"),
    "a whole host": ("https://git.example.com", "https://git.example.com/a/b.git"),
    "a slash at the end of the prefix": ("https://git.example.com/a/", "https://git.example.com/a"),
    "a slash at the end of the URL": ("https://git.example.com/a", "https://git.example.com/a/"),
    "a host in other letters": ("https://Git.Example.com/a", "HTTPS://gIT.example.COM/a"),
    "the scheme's own port": ("https://git.example.com/a", "https://git.example.com:443/a"),
    "the scheme's own port, in the prefix": ("http://git.example.com:80/a", "http://git.example.com/a"),
    "an empty port": ("https://git.example.com:/a", "https://git.example.com/a"),
    "the same port": ("https://git.example.com:8443/a", "https://git.example.com:8443/a/b"),
    "an encoded letter": ("https://git.example.com/team", "https://git.example.com/t%65am/x"),
    "a user, which counts over SSH alone": ("https://git.example.com/a", "https://bot@git.example.com/a"),
    "plain http that is named": ("http://git.example.com/a", "http://git.example.com/a"),
    "SSH, written as a URL and as scp does": ("ssh://git@git.example.com/~/a", "git@git.example.com:a/b.git"),
    "SSH below the root": ("ssh://git.example.com/srv", "git.example.com:/srv/a.git"),
    "any user of SSH": ("ssh://git.example.com", "git@git.example.com:a/b.git"),
    "the home folder said twice": ("git@git.example.com:~/a", "git@git.example.com:a/b"),
    "an IPv6 address": ("https://[::1]:8443/a", "https://[::1]:8443/a/b"),
}

NOT_COVERED = {
    "another host": ("https://git.example.com/a", "https://evil.example.com/a"),
    "a host that begins so": ("https://git.example.com", "https://git.example.com.evil.org/a"),
    "a host that ends so": ("https://example.com", "https://git.example.com/a"),
    "a path that begins so": ("https://git.example.com/a", "https://git.example.com/ab"),
    "a path above": ("https://git.example.com/a/b", "https://git.example.com/a"),
    "a path in other letters": ("https://git.example.com/Team", "https://git.example.com/team"),
    "another port": ("https://git.example.com/a", "https://git.example.com:8443/a"),
    "plain http": ("https://git.example.com/a", "http://git.example.com/a"),
    "plain http on the port of https": ("https://git.example.com/a", "http://git.example.com:443/a"),
    "https where http is named": ("http://git.example.com/a", "https://git.example.com/a"),
    "SSH where https is named": ("https://git.example.com/a", "ssh://git.example.com/a"),
    "another user of SSH": ("ssh://git@git.example.com", "ssh://root@git.example.com/a"),
    "no user of SSH where one is named": ("git@git.example.com:a", "git.example.com:a"),
    "the root for the home folder": ("ssh://git.example.com/a", "git.example.com:a"),
    "the host as user": ("https://git.example.com", "https://git.example.com@evil.example.com/a"),
    "the host as user and password": ("https://git.example.com", "https://git.example.com:443@evil.example.com/a"),
    "two users": ("https://git.example.com", "https://x@evil.example.com@git.example.com/a"),
    "a step up": ("https://git.example.com/a", "https://git.example.com/a/../b"),
    "an encoded step up": ("https://git.example.com/a", "https://git.example.com/a/%2e%2E/b"),
    "a step up, encoded twice": ("https://git.example.com/a", "https://git.example.com/a/%252e%252e/b"),
    "an encoded slash": ("https://git.example.com/a", "https://git.example.com/a/..%2f../b"),
    "a step that stays": ("https://git.example.com/a", "https://git.example.com/./a"),
    "an empty step": ("https://git.example.com/a", "https://git.example.com//a"),
    "a backslash": ("https://git.example.com", "https://evil.example.com\\@git.example.com/a"),
    "an encoded backslash": ("https://git.example.com/a", "https://git.example.com/a/..%5c..%5cb"),
    "a question": ("https://git.example.com/a", "https://git.example.com/a?x=/b"),
    "a fragment": ("https://git.example.com", "https://evil.example.com#@git.example.com/a"),
    "a bracket": ("https://[::1]", "https://[::1]evil.example.com/a"),
    "a dot at the end of the host": ("https://git.example.com", "https://git.example.com./a"),
    "letters that only look alike": ("https://git.example.com", "https://g\u0131t.example.com/a"),
    "a line break": ("https://git.example.com", "https://git.example.com/a\nhttps://evil.example.com"),
    "a tab that readers drop": ("https://git.example.com", "https://git.exa\tmple.com/a"),
    "an encoded line break": ("https://git.example.com", "https://git.example.com/a%0a"),
    "what isn't text": ("https://git.example.com", "https://git.example.com/%ff%fe"),
    "scp with a step up": ("git@git.example.com:a", "git@git.example.com:a/../b"),
    "scp that looks like a port": ("ssh://git.example.com:2222", "git.example.com:2222/a"),
    "a file": ("https://git.example.com", "file:///git.example.com/a"),
    "nothing": ("https://git.example.com", ""),
    "nothing for nothing": ("", ""),
}


@pytest.mark.parametrize(("prefix", "url"), COVERED.values(), ids=COVERED)
def test_what_is_named_is_covered(prefix, url):
    assert CredentialScope.of(prefix).covers(url)


@pytest.mark.parametrize(("prefix", "url"), NOT_COVERED.values(), ids=NOT_COVERED)
def test_what_isn_t_is_not(prefix, url):
    assert not CredentialScope.of(prefix).covers(url)


def test_entries_are_separated_by_white_space_and_come_from_several_texts():
    scope = CredentialScope.of("https://a.example/x\n  https://b.example\t", "git@c.example:x")
    assert [str(address) for address in scope.addresses] == [
        "https://a.example/x", "https://b.example", "ssh://git@c.example/~/x",
    ]  # fmt: skip
    assert scope.unusable == 0


def test_entries_that_are_no_urls_are_counted_and_cover_nothing():
    scope = CredentialScope.of("*", "https://*.example.com", "git.example.com", "https://a.example,https://b.example")
    assert scope == CredentialScope((), 4)
    assert not scope.covers("https://git.example.com/a")


def test_a_password_of_ssh_is_no_part_of_an_address():
    with pytest.raises(NoAddressError):
        Address.of("ssh://git:s3cr3t@git.example.com/a")
    with pytest.raises(NoAddressError):
        Address.of("ssh://git%3as3cr3t@git.example.com/a")


# --- laws -----------------------------------------------------------------------------------------

LETTERS = "aAbZ09-._~%@:/\\?#[] é\n2eEfF5cC"
HOSTS = st.sampled_from(["git.example.com", "GIT.example.com", "evil.example.com", "[::1]", "127.0.0.1"])
STEPS = st.lists(st.text(st.sampled_from("abA.~é é-_+"), min_size=1, max_size=4), max_size=4).filter(
    lambda steps: not {".", ".."} & set(steps)
)
ANY_TEXT = st.text(st.sampled_from(LETTERS), max_size=20)


@st.composite
def urls(draw):
    """URLs of all schemes, some of them with anything at all in one place."""
    scheme = draw(st.sampled_from(["https", "http", "ssh", "HTTPS"]))
    user = draw(st.sampled_from(["", "", "git@", "a:b@"]) | ANY_TEXT)
    port = draw(st.sampled_from(["", "", ":", ":443", ":80", ":22", ":8443"]))
    path = draw(st.builds(lambda steps: "".join(f"/{quote(step)}" for step in steps), STEPS) | ANY_TEXT)
    return f"{scheme}://{user}{draw(HOSTS)}{port}{path}"


@st.composite
def scp_urls(draw):
    return f"{draw(st.sampled_from(['', 'git@']))}git.example.com:{draw(ANY_TEXT)}"


ANY_URL = urls() | scp_urls() | ANY_TEXT


def address(text):
    try:
        return Address.of(text)
    except NoAddressError:
        return None


@given(ANY_URL, ANY_URL)
def test_never_another_scheme_host_or_port(prefix, url):
    other = address(url)
    if CredentialScope.of(prefix).covers(url):
        entries = [one for one in map(address, prefix.split()) if one]  # white space separates them
        near = [one for one in entries if (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)]
        assert any(other.steps[: len(one.steps)] == one.steps for one in near)


@given(ANY_URL)
def test_an_address_covers_itself_however_it_is_written(url):
    found = address(url)
    if found:
        assert found.covers(found)
        assert Address.of(str(found)) == found


FEW = st.builds(
    Address,
    st.sampled_from(["ssh", "https"]),
    st.sampled_from(["", "git"]),
    st.just("git.example.com"),
    st.just(22),
    st.lists(st.sampled_from("ab"), max_size=3).map(tuple),
)


@given(FEW, FEW, FEW)
def test_what_is_below_what_is_below_is_below(one, other, third):
    if one.covers(other) and other.covers(third):
        assert one.covers(third)
    if one.covers(other) and other.covers(one):
        assert one == other


@given(HOSTS, STEPS, STEPS)
def test_a_prefix_covers_exactly_what_continues_it_by_whole_steps(host, steps, more):
    def url(parts):
        return f"https://{host}" + "".join(f"/{quote(part)}" for part in parts)

    assert CredentialScope.of(url(steps)).covers(url([*steps, *more]))
    assert CredentialScope.of(url(steps)).covers(url(more)) == (more[: len(steps)] == steps)
    if steps:
        assert not CredentialScope.of(url(steps)).covers(url([*steps[:-1], steps[-1] + "x", *more]))


@given(st.lists(ANY_TEXT), ANY_URL)
def test_no_text_raises(texts, url):
    CredentialScope.of(*texts).covers(url)


@given(urls(), st.integers(0, 60), st.sampled_from("/.%\\@:#?"))
def test_what_is_inserted_never_leads_to_another_host(url, at, inserted):
    """What git connects to is what is compared: whoever reads the URL as git is given it finds the same host."""
    changed = url[:at] + inserted + url[at:]
    key = Credentials(ssh_private_key="x", known_hosts="x")
    try:
        given_to_git = Repository.of(changed, key)
    except SourceError:
        return
    scope = CredentialScope.of("https://git.example.com", "http://git.example.com", "ssh://git.example.com")
    if scope.covers(given_to_git.url) and given_to_git.scheme is not Scheme.SSH:
        assert urlsplit(given_to_git.url).netloc.lower().partition(":")[0] == "git.example.com"
    elif scope.covers(given_to_git.url):
        host = given_to_git.url.lower().removeprefix("ssh://").partition("/")[0].rpartition("@")[2].partition(":")[0]
        assert host == "git.example.com"
