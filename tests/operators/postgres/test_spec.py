"""What of a MyDatabase makes no sense is named by its field, with what to do."""

import pytest

from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile_operators.postgres.access.hba import hba_text
from kubectl_reconcile_operators.postgres.spec import OWNED_PARAMETERS, database_spec, parts_of, secrets_named


def cr(**spec):
    whole = {"version": 17, "storage": {"size": "1Gi"}, **spec}
    return {"metadata": {"name": "db", "namespace": "shop"}, "spec": whole}


REFUSED = {
    "an unknown major version": ({"version": 9}, ".spec.version: must be a major version that is known here, one of 14, 15"),
    "a minor version": ({"version": "17.6"}, ".spec.version: must be a whole number"),
    "no replicas": ({"replicas": 0}, ".spec.replicas: must be between 1 and 7, not 0"),
    "no storage": ({"storage": None}, ".spec.storage: is required"),
    "a size of nothing": ({"storage": {"size": "0Gi"}}, ".spec.storage.size: must be a quantity as in 10Gi, not '0Gi'"),
    "a size of words": ({"storage": {"size": "large"}}, ".spec.storage.size: must be a quantity"),
    "an image with spaces": ({"image": "postgres 17"}, ".spec.image: must be an image reference"),
    "a parameter that is ours": ({"parameters": {"port": "1"}}, ".spec.parameters[port]: can't be set, since it is how"),
    "a parameter of recovery": (
        {"parameters": {"recovery_target": "immediate"}}, ".spec.parameters[recovery_target]: can't be set, since kubectl-reconcile manages recovery",
    ),
    "a parameter that is a number": ({"parameters": {"jit": 1}}, ".spec.parameters[jit]: must be text of one line, in quotes"),
    "a parameter of two lines": ({"parameters": {"jit": "on\nx = 1"}}, ".spec.parameters[jit]: must be text of one line"),
    "a name that is no parameter's": ({"parameters": {"a b": "1"}}, ".spec.parameters[a b]: isn't a parameter's name"),
    "a user that PostgreSQL has": ({"users": [{"name": "postgres"}]}, ".spec.users[0].name: postgres is a name that"),
    "a user of PostgreSQL's own": ({"users": [{"name": "pg_x"}]}, ".spec.users[0].name: pg_x is a name that"),
    "a user twice": ({"users": [{"name": "a"}, {"name": "a"}]}, ".spec.users[1].name: a is there twice"),
    "a user in capitals": ({"users": [{"name": "Shop"}]}, ".spec.users[0].name: must be lower-case letters, digits and underscores"),
    "a database of nobody's": (
        {"databases": [{"name": "a", "owner": "b"}]}, ".spec.databases[0].owner: must be postgres or one of .spec.users, not 'b'",
    ),
    "a rule that lets anybody in": (
        {"hba": [{"method": "trust"}]},
        ".spec.hba[0].method: must be one of scram-sha-256, reject: 'trust' lets anybody in without a password (hint: scram-sha-256)",
    ),
    "a rule that takes passwords in clear text": (
        {"hba": [{"method": "password"}]},
        ".spec.hba[0].method: must be one of scram-sha-256, reject: 'password' sends passwords in clear text",
    ),
    "a rule without a method": ({"hba": [{}]}, ".spec.hba[0].method: is required"),
    "a line instead of a rule": ({"hba": ["host all all all trust"]}, ".spec.hba[0]: must be an object"),
    "a rule about the superuser": (
        {"hba": [{"method": "reject", "users": ["postgres"]}]}, ".spec.hba[0].users: postgres is who kubectl-reconcile logs in as",
    ),
    "a rule about replication": (
        {"hba": [{"method": "reject", "databases": ["replication"]}]}, ".spec.hba[0].databases: kubectl-reconcile manages replication",
    ),
    "a rule for nobody": ({"hba": [{"method": "reject", "users": []}]}, ".spec.hba[0].users: must be 1 to 20 names"),
    "a rule for a name that is a file": (
        {"hba": [{"method": "reject", "users": ["@/etc/passwd"]}]}, ".spec.hba[0].users: must be names or all",
    ),
    "a rule with a line break in it": (
        {"hba": [{"method": "reject", "users": ["shop\nhost"]}]}, ".spec.hba[0].users: must be names or all",
    ),
    "a rule for all and others": ({"hba": [{"method": "reject", "users": ["all", "shop"]}]}, ".spec.hba[0].users: has all beside others"),
    "a rule for a host": (
        {"hba": [{"method": "reject", "address": "db.example.com"}]}, ".spec.hba[0].address: must be all or a network such as",
    ),
    "a rule for a network with a host in it": (
        {"hba": [{"method": "reject", "address": "10.1.2.3/16"}]}, ".spec.hba[0].address: must be all or a network such as",
    ),
    "a rule for a network of an interface": (
        {"hba": [{"method": "reject", "address": "fe80::%eth0/64"}]}, ".spec.hba[0].address: must be all or a network such as",
    ),
    "rules of too many names": (
        {"hba": [{"method": "reject", "users": [f"u{'x' * 60}{at:02}" for at in range(20)]}] * 40}, ".spec.hba: would be a file of ",
    ),
    "too many rules": ({"hba": [{"method": "reject"}] * 51}, ".spec.hba: has 51 rules, more than 50"),
    "a certificate of no Secret": ({"tls": {}}, ".spec.tls.secretName: is required"),
    "a certificate of what can't be a Secret": ({"tls": {"secretName": "A b"}}, ".spec.tls.secretName: must be the name of a Secret, not 'A b'"),
    "a way of TLS that is none": ({"tls": {"secretName": "a", "mode": "Maybe"}}, ".spec.tls.mode: must be one of Allow, Require"),
    "a policy that is none": ({"deletionPolicy": "Keep"}, ".spec.deletionPolicy: must be one of Retain, Delete"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "said"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_named(spec, said):
    with pytest.raises(SpecError) as told:
        database_spec(cr(**spec))
    assert str(told.value).startswith(said)


def test_no_parameter_that_is_ours_can_be_set():
    for name in OWNED_PARAMETERS:
        with pytest.raises(SpecError, match="hint: remove it"):
            database_spec(cr(parameters={name: "x"}))


NAMED = {
    "a program": {"ssl_passphrase_command": "cat /etc/passphrase"},
    "a library that compiles": {"jit_provider": "/data/evil"},
    "a folder of libraries": {"dynamic_library_path": "/data"},
    "a program of an extension": {"basebackup_to_shell.command": "sh"},
    "a script of an extension": {"pgsodium.getkey_script": "/data/key"},
    "code that an extension runs": {"plperl.on_init": "system('id')"},
    "a file of an extension": {"some.key_file": "/etc/key"},
    "a folder of logs": {"log_directory": "/var/lib"},
    "a file with a key": {"krb_server_keyfile": "/etc/krb5.keytab"},
    "another file of parameters": {"include": "/data/more.conf"},
    "a folder of them": {"include_dir": "/data"},
    "a library beside the image's": {"shared_preload_libraries": "auto_explain, /data/evil.so"},
    "a library above the image's": {"session_preload_libraries": "$libdir/../evil"},
}


@pytest.mark.parametrize("parameters", NAMED.values(), ids=NAMED)
def test_no_parameter_names_a_program_or_a_file(parameters):
    (name,) = parameters
    with pytest.raises(SpecError) as told:
        database_spec(cr(parameters=parameters))
    assert str(told.value).startswith(f".spec.parameters[{name}]: ")


USUAL = {
    "search_path": '"$user", public', "shared_preload_libraries": "pg_stat_statements, $libdir/auto_explain", "temp_file_limit": "1GB",
    "log_temp_files": "0", "auto_explain.log_min_duration": "1s", "pg_stat_statements.max": "1000", "wal_sync_method": "fdatasync",
}  # fmt: skip


@pytest.mark.parametrize("name", USUAL)
def test_what_only_sounds_like_a_file_can_be_set(name):
    assert database_spec(cr(parameters={name: USUAL[name]})).parameters == {name: USUAL[name]}


def test_what_makes_sense_is_read():
    found = database_spec(cr(users=[{"name": "shop"}], databases=[{"name": "a", "owner": "shop"}, {"name": "b"}]))
    assert [each.owner for each in found.databases] == ["shop", "postgres"]
    assert found.server_image == "docker.io/library/postgres:17"
    assert database_spec(cr(image="mine:1")).server_image == "mine:1"


def test_rules_come_after_ours_and_before_the_one_that_lets_everybody_in():
    rules = [
        {"databases": ["orders", "all-of-it"], "users": ["shop"], "address": "10.1.0.0/16", "method": "scram-sha-256"},
        {"method": "reject", "users": ["replication"]},
    ]
    found = database_spec(cr(hba=rules)).hba
    lines = hba_text(found, is_tls_required=False).splitlines()
    assert lines[:5] == hba_text((), is_tls_required=False).splitlines()[:5]
    assert lines[5:] == [
        'host "orders","all-of-it" "shop" 10.1.0.0/16 scram-sha-256', 'host all "replication" all reject', "host all all all scram-sha-256",
    ]  # fmt: skip
    required = hba_text(found, is_tls_required=True).splitlines()
    plain = [line for line in required if line.startswith("host ") and not line.endswith("reject")]
    assert plain == ["host all postgres all scram-sha-256"]


def test_secrets_are_named_whatever_the_spec_looks_like():
    assert secrets_named(cr(users=[{"name": "my_shop"}, {"name": "A"}, {}, 3, {"name": 4}])).names == (
        "db-superuser", "db-replication", "db-user-my-shop",
    )  # fmt: skip
    assert secrets_named(cr(tls={"secretName": "mine"})).names == ("db-superuser", "db-replication", "mine")
    assert secrets_named({"metadata": {"name": "db"}, "spec": 3}).names == ("db-superuser", "db-replication")


def test_a_list_of_names_is_several_values_and_anything_else_is_one():
    assert parts_of("search_path", '"$user", public') == ("$user", "public")
    assert parts_of("work_mem", "1MB, 2MB") == ("1MB, 2MB",)
