"""The spec of a MyDatabase, and what in it makes no sense.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from kubectl_reconcile.module_api import (
    Between,
    Context,
    Manifest,
    Select,
    SpecError,
    map_at,
    maps_in,
    spec_of,
    text_at,
)
from kubectl_reconcile_operators.postgres.access.hba import HbaRule, check_rules
from kubectl_reconcile_operators.postgres.access.spec import TlsWish
from kubectl_reconcile_operators.postgres.backup.spec import BackupWish, FromBackup
from kubectl_reconcile_operators.postgres.bootstrap.spec import BootstrapWish, FromCluster, InitdbWish
from kubectl_reconcile_operators.volumes import VolumeWish, bytes_of

REPOSITORY = "docker.io/library/postgres"
MAJORS = (14, 15, 16, 17, 18)
SUPERUSER, REPLICATOR = "postgres", "replicator"
TLS_VOLUME = "tls"
NAME = r"[a-z](?:[a-z0-9_]*[a-z0-9])?"
NAME_MAX = 30
REPLICAS_MAX = 7

_RESERVED = frozenset({SUPERUSER, REPLICATOR, "template0", "template1", "public", "none"})
_PARAMETER = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?")

OWNED_PARAMETERS: Mapping[str, str] = {
    **dict.fromkeys(
        ("listen_addresses", "port", "unix_socket_directories", "cluster_name", "external_pid_file"),
        "it is how the server is reached and told from others",
    ),
    **dict.fromkeys(
        ("data_directory", "config_file", "hba_file", "ident_file"), "files are where the image and the volume have them"
    ),
    **dict.fromkeys(
        (
            "wal_level", "restart_after_crash", "wal_log_hints", "hot_standby", "max_wal_senders", "max_replication_slots", "max_slot_wal_keep_size", "primary_conninfo",
            "primary_slot_name", "synchronous_standby_names", "wal_sender_timeout", "wal_receiver_timeout", "wal_retrieve_retry_interval",
            "promote_trigger_file",
        ),
        "kubectl-reconcile manages replication",
    ),
    **dict.fromkeys(
        ("restore_command", "archive_mode", "archive_command", "archive_library", "archive_cleanup_command", "recovery_end_command", "ssl_passphrase_command", "ssl_passphrase_command_supports_reload"),
        "it runs programs in the server's name",
    ),
    **dict.fromkeys(
        ("jit_provider", "dynamic_library_path", "extension_control_path", "oauth_validator_libraries"),
        "it has the server load files as a part of itself",
    ),
    **dict.fromkeys(
        ("krb_server_keyfile", "log_directory", "log_filename", "stats_temp_directory", "ssl_dh_params_file", "ssl_crl_dir"),
        "files are where the image and the volume have them",
    ),
    **dict.fromkeys(("fsync", "full_page_writes"), "without it a crash can destroy the database"),
    "data_sync_retry": "a server that goes on after a failed write can lose what it has acknowledged",
    **dict.fromkeys(("ssl", "ssl_ca_file", "ssl_cert_file", "ssl_key_file", "ssl_crl_file"), ".spec.tls says which certificate there is"),
    "password_encryption": "passwords are stored as SCRAM-SHA-256 asks",
    "allow_alter_system": "parameters are set by it",
    "logging_collector": "the log goes to the pod's output",
}  # fmt: skip
"""Parameters that aren't the spec's to set, each with the reason."""

_LISTS = frozenset(
    {
        "local_preload_libraries",
        "search_path",
        "session_preload_libraries",
        "shared_preload_libraries",
        "temp_tablespaces",
    }
)
"""Parameters that are lists of names, which ALTER SYSTEM takes one by one."""

_LIBRARY = re.compile(r"(\$libdir/)?[A-Za-z0-9_.-]+")
"""A library among those of the image."""
_NAMES_FILES = re.compile(
    r"(.*[._])?(command|script|library|libraries|path|file|dir|directory|location|vmoptions|on_init|on_plperlu?_init)"
)
"""What parameters of extensions are called that name programs, files, or code to run."""
_INCLUDES = ("include", "include_dir", "include_if_exists")
"""What isn't a parameter, but names other files where a server reads parameters."""
_WAITS = frozenset({"on", "true", "yes", "1", "remote_apply"})
"""Values of `synchronous_commit` by which a replica has a row on its disk before it is acknowledged."""
COMMIT = "synchronous_commit"


@dataclass(frozen=True, slots=True)
class UserWish:
    """Somebody who may log in, with the password of a Secret."""

    name: str
    superuser: bool = False
    create_database: bool = False


@dataclass(frozen=True, slots=True)
class DatabaseWish:
    """A database in the server, and its owner."""

    name: str
    owner: str = SUPERUSER


@dataclass(frozen=True, slots=True)
class FailoverWish:
    """When a replica takes over from a primary that is away: after how long, and what may be lost without asking.

    *keep_old_volumes_hours* is how long a volume is kept that can't be rewound to what the new primary has.
    """

    delay_seconds: Annotated[int, Between(0, 86_400)] = 30
    max_lag_bytes: Annotated[int, Between(0, 1 << 50)] = 16 << 20
    mode: Literal["Automatic", "Approve"] = "Automatic"
    keep_old_volumes_hours: Annotated[int, Between(0, 87_600)] = 24


@dataclass(frozen=True, slots=True)
class SynchronousWish:
    """How many replicas have a row before it is acknowledged: always, or as many as there are."""

    min: Annotated[int, Between(1, REPLICAS_MAX - 1)] = 1
    mode: Literal["Required", "Preferred"] = "Required"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAccess:
    """Who may log in, from where, and how."""

    users: tuple[UserWish, ...] = ()
    hba: tuple[HbaRule, ...] = ()
    tls: TlsWish | None = None


@dataclass(frozen=True, slots=True)
class MyDatabaseSpec(DatabaseAccess):
    """The spec of a MyDatabase."""

    version: int
    storage: VolumeWish
    replicas: Annotated[int, Between(1, REPLICAS_MAX)] = 1
    image: str = ""
    resources: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    databases: tuple[DatabaseWish, ...] = ()
    failover: FailoverWish | None = None
    synchronous: SynchronousWish | None = None
    backup: BackupWish | None = None
    bootstrap: BootstrapWish | None = None
    paused: bool = False
    deletion_policy: Literal["Retain", "Delete"] = "Retain"

    @property
    def replicates(self) -> bool:
        """Whether somebody copies a server: replicas, or backups."""
        return self.replicas > 1 or self.backup is not None

    @property
    def is_lossless(self) -> bool:
        """Whether no row that was acknowledged may be lost."""
        return self.synchronous is not None and self.synchronous.mode == "Required"

    @property
    def accepted(self) -> MyDatabaseSpec:
        """What of it is carried out: no parameter that would lose what must not be lost."""
        if not (self.is_lossless and self.loose_commit):
            return self
        return replace(self, parameters={name: each for name, each in self.parameters.items() if name != COMMIT})

    @property
    def loose_commit(self) -> str:
        """The value of `synchronous_commit` by which rows are acknowledged that no replica has on its disk yet, empty where there is none."""
        return loose_commit_in(self.parameters)

    @property
    def filled_from(self) -> FromBackup | FromCluster | None:
        """The backup or the server that it begins with, None where it begins empty."""
        return (self.bootstrap.from_backup or self.bootstrap.from_cluster) if self.bootstrap else None

    @property
    def initdb(self) -> str:
        """What ``initdb`` is told of a database that begins empty."""
        wanted = self.bootstrap.initdb if self.bootstrap else None
        return (wanted or InitdbWish()).words(self.version)

    @property
    def roles(self) -> tuple[str, ...]:
        """Everybody who logs in with the password of a Secret, the superuser aside."""
        return (*((REPLICATOR,) if self.replicates else ()), *(each.name for each in self.users))

    @property
    def server_image(self) -> str:
        """The image that instances run."""
        return self.image or f"{REPOSITORY}:{self.version}"


def loose_commit_in(parameters: Mapping[str, Any]) -> str:
    """Return the value of `synchronous_commit` among *parameters* by which rows are acknowledged that no replica has on its disk yet, empty where there is none. Servers read it in any case."""
    value = str(parameters.get(COMMIT, "on"))
    return "" if value.lower() in _WAITS else value


def parts_of(parameter: str, value: str) -> tuple[str, ...]:
    """Return the values that a parameter is set to: several where it is a list of names, else one."""
    if parameter not in _LISTS:
        return (value,)
    return tuple(part.strip().strip('"') for part in value.split(",") if part.strip())


def database_spec(cr: Manifest) -> MyDatabaseSpec:
    """Return the spec of *cr*.

    Raises:
        SpecError: it makes no sense; the field is named.
    """
    spec = spec_of(cr, MyDatabaseSpec)
    if spec.version not in MAJORS:
        known = ", ".join(map(str, MAJORS))
        raise SpecError(
            ".spec.version",
            f"must be a major version that is known here, one of {known}, not {spec.version} (hint: a minor version is a matter of .spec.image)",
        )
    if not bytes_of(spec.storage.size):
        raise SpecError(".spec.storage.size", f"must be a quantity as in 10Gi, not {spec.storage.size!r}")
    if re.search(r"\s", spec.image):
        raise SpecError(".spec.image", "must be an image reference such as postgres:17.6, without spaces")
    _check_parameters(spec.parameters)
    _check_names(".spec.users", [each.name for each in spec.users])
    _check_names(".spec.databases", [each.name for each in spec.databases])
    _check_owners(spec)
    if spec.tls:
        spec.tls.check()
    check_rules(spec.hba, {SUPERUSER, REPLICATOR})
    if spec.backup:
        spec.backup.check()
    if spec.bootstrap:
        spec.bootstrap.check(spec.version, text_at(cr, "metadata", "name"))
    return spec


def _check_parameters(parameters: Mapping[str, Any]) -> None:
    for name, value in sorted(parameters.items()):
        where = f".spec.parameters[{name}]"
        if not _PARAMETER.fullmatch(name):
            raise SpecError(where, "isn't a parameter's name: use lower-case letters, digits and underscores")
        if reason := OWNED_PARAMETERS.get(name) or (
            "kubectl-reconcile manages recovery" if name.startswith("recovery_") else ""
        ):
            raise SpecError(where, f"can't be set, since {reason} (hint: remove it)")
        if name in _INCLUDES or ("." in name and _NAMES_FILES.fullmatch(name)):
            raise SpecError(where, "can't be set, since it names a file or a program (hint: remove it)")
        if not isinstance(value, str) or not value.isprintable() or not value or len(value) > 1000:
            raise SpecError(where, "must be text of one line, in quotes where it is a number")
        if name.endswith("_preload_libraries"):
            for part in parts_of(name, value):
                if not _LIBRARY.fullmatch(part):
                    raise SpecError(
                        where, f"must be names of libraries that the image has, such as auto_explain, not {part[:60]!r}"
                    )


def _check_names(where: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for at, name in enumerate(names):
        field_ = f"{where}[{at}].name"
        if not re.fullmatch(NAME, name) or len(name) > NAME_MAX:
            raise SpecError(
                field_, f"must be lower-case letters, digits and underscores, {NAME_MAX} at most, beginning with a letter and not ending with an underscore, not {name!r}"
            )  # fmt: skip
        if name in _RESERVED or name.startswith("pg_"):
            raise SpecError(field_, f"{name} is a name that PostgreSQL or kubectl-reconcile needs itself")
        if name in seen:
            raise SpecError(field_, f"{name} is there twice")
        seen.add(name)


def _check_owners(spec: MyDatabaseSpec) -> None:
    known = {SUPERUSER, *(each.name for each in spec.users)}
    for at, each in enumerate(spec.databases):
        if each.owner not in known:
            raise SpecError(
                f".spec.databases[{at}].owner", f"must be {SUPERUSER} or one of .spec.users, not {each.owner!r}"
            )


# --- Secrets --------------------------------------------------------------------------------------


def secret_of(ctx: Context, user: str) -> str:
    """Return the name of the Secret with a user's password."""
    if user == SUPERUSER:
        return ctx.name("superuser")
    return ctx.name("replication" if user == REPLICATOR else f"user-{user.replace('_', '-')}")


def secrets_named(cr: Manifest) -> Select:
    """Select the Secrets of a MyDatabase, whatever it looks like."""
    ctx = Context("", "mydatabase", cr)
    users = (each.get("name") for each in maps_in(map_at(cr, "spec").get("users")))
    known = (name for name in users if isinstance(name, str) and re.fullmatch(NAME, name) and len(name) <= NAME_MAX)
    names = (secret_of(ctx, name) for name in (SUPERUSER, REPLICATOR, *known))
    others = (text_at(cr, "spec", "tls", "secretName"), copied_by(cr))
    return Select(names=(*names, *filter(None, others)))


def copied_by(cr: Manifest) -> str:
    """Return the Secret of the server that a database begins with a copy of, empty once there is a database."""
    source = map_at(cr, "spec", "bootstrap", "fromCluster")
    if text_at(cr, "status", "systemID"):
        return ""
    return FromCluster(text_at(source, "database"), secret_name=text_at(source, "secretName")).secret
