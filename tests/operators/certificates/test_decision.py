"""What is to be done about certificates that a module issues: step by step, and nobody is cut off."""

from dataclasses import replace

import pytest

from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile.core.module.schedules import later
from kubectl_reconcile_operators.certificates.decision import (
    CertificateAim,
    CertificateDo,
    CertificateStep,
    Trusting,
    authority_renewal,
    certificate_steps,
    renewals_told,
)
from kubectl_reconcile_operators.certificates.state import (
    CertificateKind,
    CertificateTerms,
    OwnAuthority,
    OwnCertificate,
    OwnTls,
    SecretState,
)

NOW = "2026-11-20T12:00:00Z"
DAY = 86_400
CTX = Context(NOW, "store", {"metadata": {"name": "db", "namespace": "shop"}})
TERMS = CertificateTerms(lasts_s=90 * DAY, renewed_before_s=30 * DAY, authority_lasts_s=3650 * DAY)
OLD, NEW = "old", "new"
FORMED = Trusting(is_formed=True, pods=(frozenset({OLD}), frozenset({OLD})))
BEGINNING = Trusting(is_formed=False, pods=())
MEMBER, OPERATOR = CertificateKind("of members", is_of_members=True), CertificateKind("of the operator", can_wait=True)


def at(days, seconds=0):
    """A moment some days from now."""
    return later(NOW, days * DAY + seconds)


def authority(**more):
    whole = {"state": SecretState.OK, "signer": OLD, "until": at(3000), "trusted": frozenset({OLD})}
    return OwnAuthority("db-ca", **{**whole, **more})


def certificate(kind="member", of=MEMBER, **more):
    whole = {"state": SecretState.OK, "issuer": OLD, "since": at(-10), "until": at(80), "trusted": frozenset({OLD})}
    return OwnCertificate(kind, f"db-{kind}", of, **{**whole, **more})


def steps(own=None, *certificates, users=FORMED, terms=TERMS):
    tls = OwnTls(own or authority(), certificates or (certificate(),))
    return list(certificate_steps(terms, tls, users, CTX))


def on_authority(do, aim, text, reason="Renewing"):
    return CertificateStep(CertificateDo(do), CertificateAim(aim), text, "ca", "db-ca", reason)


def on_member(do, aim, text, reason="Renewing", kind="member"):
    return CertificateStep(CertificateDo(do), CertificateAim(aim), text, kind, f"db-{kind}", reason)


def test_nothing_is_to_be_done_while_all_is_well():
    assert steps() == []


def test_secrets_of_somebody_else_are_left_alone():
    assert steps(authority(state=SecretState.FOREIGN), certificate(state=SecretState.BROKEN)) == []
    assert steps(None, certificate(state=SecretState.FOREIGN, issuer="x", trusted=frozenset())) == []


# --- the authority is missing ---------------------------------------------------------------------

ABSENT = OwnAuthority("db-ca")
MADE = on_authority(
    "make-authority", "creating", "make Secret db-ca, the cluster's own certificate authority", "Certifying"
)


def again(why):
    text = f"create a new authority in Secret db-ca: {why}; members trust the other authorities until all certificates signed by them are replaced"
    return on_authority("make-authority", "recovering", text, "AuthorityLost")


LOST = {
    "it is made before the first member": (ABSENT, BEGINNING, MADE),
    "it is made again where there is a cluster": (ABSENT, FORMED, again("it is gone")),
    "it is made again where there is a pod": (ABSENT, Trusting(is_formed=False, pods=(frozenset(),)), again("it is gone")),
    "it is made again where there was a cluster": (ABSENT, Trusting(is_formed=True, pods=()), again("it is gone")),
    "it is made again when it has ended": (authority(until=NOW), FORMED, again(f"it ended at {NOW}")),
    "it is made again when it is broken, which is said": (
        authority(state=SecretState.BROKEN, why="its key is damaged"), FORMED, again("its key is damaged"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("own", "users", "step"), LOST.values(), ids=LOST)
def test_without_an_authority(own, users, step):
    assert steps(own, users=users)[0] == step


def test_an_authority_that_has_ended_is_not_made_again_where_another_follows():
    own = authority(until=at(-1), upcoming=NEW, trusted=frozenset({OLD, NEW}))
    assert CertificateDo.MAKE_AUTHORITY not in [each.do for each in steps(own)]
    assert steps(authority(until=at(0, 1)))[0].do is CertificateDo.ADD_AUTHORITY


# --- certificates are missing ---------------------------------------------------------------------

GONE = {"state": SecretState.ABSENT, "issuer": "", "since": "", "until": ""}
LACKS = {
    "that is gone": (GONE, "it isn't there"),
    "that is broken": ({"state": SecretState.BROKEN, "why": "tls.key is damaged"}, "tls.key is damaged"),
    "that nobody trusts": ({"issuer": "x"}, "it is signed by an authority that isn't trusted"),
    "that has ended": ({"until": NOW}, f"it ended at {NOW}"),
}


@pytest.mark.parametrize(("more", "why"), LACKS.values(), ids=LACKS)
def test_a_certificate_is_issued_at_once(more, why):
    expected = on_member(
        "issue", "recovering", f"issue the certificate of Secret db-member, of members: {why}", "Certifying"
    )
    assert steps(None, certificate(**more))[0] == expected


def test_the_first_certificates_need_no_reason():
    text = "issue the certificate of Secret db-member, of members"
    assert steps(None, certificate(**GONE), users=BEGINNING) == [on_member("issue", "creating", text, "Certifying")]
    broken = steps(None, certificate(state=SecretState.BROKEN, why="it is damaged"), users=BEGINNING)
    assert broken == [on_member("issue", "creating", f"{text}: it is damaged", "Certifying")]


NO_SIGNERS = {
    "a new authority signs nothing yet": authority(signer="", until="", upcoming=NEW, trusted=frozenset({OLD, NEW})),
    "an old one has ended": authority(until=at(-1), upcoming=NEW, trusted=frozenset({OLD, NEW})),
}


@pytest.mark.parametrize("own", NO_SIGNERS.values(), ids=NO_SIGNERS)
def test_where_no_key_is_trusted_the_new_one_signs_what_must_be_issued(own):
    text = "sign by the new authority of Secret db-ca before all members trust it: db-member must be issued (it isn't there), and there is no other key"
    found = steps(own, certificate("first", OPERATOR, **GONE), certificate(**GONE), certificate("last", **GONE))
    assert found == [on_authority("use-authority", "recovering", text, "AuthorityLost")]


def test_who_can_wait_waits_for_a_key_that_members_trust():
    own = authority(signer="", until="", upcoming=NEW, trusted=frozenset({OLD, NEW}))
    whole = certificate(trusted=frozenset({OLD, NEW}))
    assert steps(own, certificate("operator", OPERATOR, **GONE), whole) == []


# --- what is trusted ------------------------------------------------------------------------------


def test_secrets_are_told_what_is_trusted_once_they_say_otherwise():
    own = authority(upcoming=NEW, trusted=frozenset({OLD, NEW}))
    expected = on_member("trust", "renewing", "have Secret db-member trust the authorities of Secret db-ca")
    told = certificate("other", trusted=frozenset({OLD, NEW}))
    assert steps(own, told, certificate()) == [expected]
    broken = steps(own, certificate(state=SecretState.BROKEN, why="it is damaged"))
    assert [each.do for each in broken] == [CertificateDo.ISSUE]


# --- renewal --------------------------------------------------------------------------------------

RENEWED = "renew the certificate of Secret db-member, of members: it ends at "
RENEWALS = {
    "a month before its end": ({"until": at(30)}, True),
    "not a second earlier": ({"until": at(30, 1)}, False),
    "what is good for longer than is wanted by now": ({"since": at(-10), "until": at(80, 901)}, True),
    "not what is hardly longer": ({"since": at(-10), "until": at(80, 900)}, False),
    "not what is of an unknown end": ({"until": "", "since": ""}, False),
}


@pytest.mark.parametrize(("more", "is_renewed"), RENEWALS.values(), ids=RENEWALS)
def test_a_certificate_is_renewed_in_its_time(more, is_renewed):
    expected = [on_member("issue", "renewing", f"{RENEWED}{more['until']}")] if is_renewed else []
    assert steps(None, certificate(**more)) == expected


def renewals(own, *certificates, users=FORMED):
    return [each.text for each in steps(own, *certificates, users=users) if each.do is CertificateDo.ISSUE]


def test_what_ends_with_its_authority_gains_nothing_by_another():
    soon = authority(until=at(10), upcoming=NEW, trusted=frozenset({OLD}))
    due = certificate(until=at(10))
    assert renewals(soon, due) == []
    assert renewals(soon, replace(due, until=at(9))) == [f"{RENEWED}{at(9)}"]
    other = replace(due, issuer=NEW, trusted=frozenset({OLD, NEW}))
    assert renewals(replace(soon, trusted=frozenset({OLD, NEW})), other) == [f"{RENEWED}{at(10)}"]


def test_nothing_is_renewed_by_a_key_that_a_member_doesnt_trust():
    halfway = Trusting(is_formed=True, pods=(frozenset({OLD}), frozenset({NEW})))
    assert renewals(None, certificate(until=at(10)), users=halfway) == []
    assert renewals(authority(signer=""), certificate(until=at(10))) == []


# --- another authority ----------------------------------------------------------------------------


def test_another_authority_is_added_before_certificates_would_have_to_end_with_the_first():
    text = (
        f"add another authority to Secret db-ca: the one that signs ends at {at(120)}; the new one signs nothing before all members"
        " trust it"
    )
    assert steps(authority(until=at(120))) == [on_authority("add-authority", "renewing", text)]
    assert steps(authority(until=at(120, 1))) == []
    assert steps(authority(until="")) == []
    assert authority_renewal(TERMS, authority(until=at(120))) == NOW


def test_the_new_authority_signs_once_all_members_trust_it():
    own = authority(until=at(100), upcoming=NEW, trusted=frozenset({OLD, NEW}))
    whole = certificate(trusted=frozenset({OLD, NEW}))
    both = frozenset({OLD, NEW})
    text = "sign by the new authority of Secret db-ca from now on: all members trust it"
    ready = Trusting(is_formed=True, pods=(both, both))
    assert steps(own, whole, users=ready) == [on_authority("use-authority", "renewing", text)]
    assert steps(own, whole, users=Trusting(is_formed=True, pods=(both, frozenset({OLD})))) == []


BOTH = frozenset({OLD, NEW})
FOLLOWED = authority(signer=NEW, trusted=BOTH)
SINCE_AN_HOUR = {"issuer": NEW, "since": at(0, -3900), "until": at(89), "trusted": BOTH}
DROPS = {
    "an hour after the last one was issued": ({}, True),
    "not a second earlier": ({"since": at(0, -3899)}, False),
    "not while it signed a certificate": ({"issuer": OLD}, False),
    "not while it isn't known since when": ({"since": "", "until": ""}, False),
}


@pytest.mark.parametrize(("more", "is_dropped"), DROPS.values(), ids=DROPS)
def test_the_old_authority_is_dropped(more, is_dropped):
    users = Trusting(is_formed=True, pods=(BOTH,))
    text = "remove from Secret db-ca the authority that signed none of the current certificates"
    expected = [on_authority("drop-authority", "renewing", text)] if is_dropped else []
    settled = certificate("other", **SINCE_AN_HOUR)
    assert steps(FOLLOWED, settled, certificate(**{**SINCE_AN_HOUR, **more}), users=users) == expected


def test_the_old_authority_stays_while_a_member_shows_what_it_had_before_however_long_that_takes():
    users = Trusting(is_formed=True, pods=(BOTH,), all_show=False)
    assert steps(FOLLOWED, certificate(**SINCE_AN_HOUR), users=users) == []


# --- status ---------------------------------------------------------------------------------------


def test_a_status_says_what_is_renewed_next_and_when_the_authority_ends():
    tls = OwnTls(authority(), (certificate(), certificate("other", until=at(60)), certificate("third", until="")))
    assert renewals_told(TERMS, tls) == {
        "authorityEndTime": at(3000),
        "nextRenewalTime": at(30),
        "nextRenewalSecret": "db-other",
    }


def test_the_authority_may_be_what_is_renewed_next_unless_another_follows_already():
    own = authority(until=at(130))
    expected = {"authorityEndTime": at(130), "nextRenewalTime": at(10), "nextRenewalSecret": "db-ca"}
    assert renewals_told(TERMS, OwnTls(own, (certificate(),))) == expected
    expected |= {"nextRenewalTime": at(50), "nextRenewalSecret": "db-member"}
    assert renewals_told(TERMS, OwnTls(replace(own, upcoming=NEW), (certificate(),))) == expected
    assert renewals_told(TERMS, OwnTls(authority(until=""), (certificate(until=""),))) == {}
