"""The settings of the service: defaults, then a TOML file, then variables of the environment.

`SETTINGS` is the whole list; docs/service.md prints it. A setting `opa.url` stands in the file as `url` under `[opa]`
and in the environment as MEMORANDA_OPA_URL, but for those whose variable the requirement names (`EAI_…`). What is
unknown, cannot be read, or is not safe enough for its environment is refused by name, and nothing starts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from memoranda.engines.contract import InstanceDeclaration
from memoranda.errors import ConfigRefused
from memoranda.faces.http.reading import (
    CREDENTIALS,
    HTTP,
    POSTGRES,
    SECONDS,
    a_file,
    a_path,
    a_text,
    algorithms,
    claim,
    database,
    instances,
    listen,
    number,
    one_of,
    reference,
    switch,
    tenant_prefix,
)
from memoranda.faces.local import data_folder
from memoranda.governance.inventory import Inventory

ENVIRONMENTS = ("development", "staging", "production")
EXAMPLE = "example"  # what the documents write where a real credential belongs
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Config:
    """How one service runs. Times are seconds, sizes bytes; an empty URL means the part that is built in."""

    environment: str = "production"
    data: Path = field(default_factory=lambda: data_folder() / "service")
    listen: str = "127.0.0.1:8080"
    public_url: str = ""
    threads: int = 16
    timeout: float = 30.0
    body_limit: int = 8 << 20
    log_level: str = "info"
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    database_url: str = ""
    database_credential: str = ""
    homes_store: str = ""
    homes_secret: str = ""
    homes_other_secret: str = ""
    homes_open: int = 64
    homes_cache_limit: int = 20 << 30
    engines_ca_file: Path | None = None
    engines_allow_http: bool = False
    engines_instances: tuple[InstanceDeclaration, ...] | Path = ()
    openfga_url: str = ""
    openfga_store: str = ""
    openfga_model: str = ""
    openfga_credential: str = ""
    openfga_timeout: float = 2.0
    opa_url: str = ""
    opa_credential: str = ""
    opa_timeout: float = 2.0
    openbao_url: str = ""
    openbao_role: str = ""
    openbao_secret: str = ""
    openbao_timeout: float = 5.0
    openbao_tenant_prefix: str = "openbao://secret/tenants/{tenant}/"
    gateway_url: str = ""
    gateway_credential: str = ""
    gateway_timeout: float = 5.0
    oidc_issuer: str = ""
    oidc_audience: str = ""
    oidc_jwks_url: str = ""
    oidc_algorithms: tuple[str, ...] = ("RS256", "ES256")
    oidc_tenant_claim: str = "tenant"
    oidc_user_claim: str = "sub"
    oidc_agent_claim: str = "agent"
    oidc_roles_claim: str = "roles"
    oidc_token_days: int = 30
    audit_sink: str = ""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)  # the EAI_CRED_… variables

    @property
    def homes_on_postgresql(self) -> bool:
        """Whether memories lie in the database, for any number of nodes, and not in folders of this one."""
        return self.homes_store != "folders" and bool(self.homes_secret)

    @property
    def strict(self) -> bool:
        """Whether insecure settings refuse to start."""
        return self.environment != "development"

    @property
    def inventory(self) -> Inventory:
        """What the Manager has rendered. ConfigRefused when its file cannot be used."""
        told = self.engines_instances
        return Inventory((), told) if isinstance(told, Path) else Inventory(told)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


class Setting(NamedTuple):
    """One setting: its name in the file, its variable, how its value is read, what it is."""

    name: str
    read: Callable[[Any], Any]
    about: str
    named: str = ""  # the variable, where it is not made from the name

    @property
    def field(self) -> str:
        return self.name.replace(".", "_")

    @property
    def variable(self) -> str:
        return self.named or f"MEMORANDA_{self.field.upper()}"


SETTINGS: tuple[Setting, ...] = (
    Setting("environment", one_of(*ENVIRONMENTS), "`development`, `staging` or `production`", "EAI_ENVIRONMENT"),
    Setting("data", a_path, "the folder of the Homes, the keys and the state"),
    Setting("listen", listen, "where it listens"),
    Setting("public_url", HTTP, "how clients reach it, for the metadata of MCP over HTTP"),
    Setting("threads", number(int, 1, 256), "requests that are worked on at once"),
    Setting("timeout", SECONDS, "seconds that a request may take"),
    Setting("body_limit", number(int, 1024, 1 << 30), "bytes that a request's body may have"),
    Setting("log_level", one_of("debug", "info", "warning", "error"), "what is written to standard error"),
    Setting("tls.certificate", a_file, "its own certificate (PEM), where no proxy before it ends TLS"),
    Setting("tls.key", a_file, "the key of that certificate"),
    Setting("database.url", database, "the state: SQLite in the data folder, or `postgresql+psycopg://role@host/name`"),
    Setting("database.credential", reference, "a reference to the password of that role"),
    Setting(
        "homes.store", one_of("", "folders", "postgresql"),
        "where memories lie: `folders`, or `postgresql` (the default with `homes.secret`)",
    ),
    Setting("homes.secret", reference, "a reference to what seals the keys of Homes in PostgreSQL, for all nodes"),
    Setting("homes.other_secret", reference, "a reference to what opens these keys, too, while the secret is changed"),
    Setting(
        "homes.open", number(int, 1, 100_000),
        "Homes that stay at hand on a node while nobody uses them; of those in PostgreSQL 1,024 more stay open with "
        "little in memory",
    ),
    Setting(
        "homes.cache_limit", number(int, 0, 1 << 50),
        "bytes of the caches that a node keeps of Homes in PostgreSQL; those not used for longest go first",
    ),
    Setting(
        "engines.ca_file", a_file, "authorities (PEM) that are trusted beside the usual ones",
        "EAI_MEMORY_ENGINES_CA_FILE",
    ),
    Setting(
        "engines.allow_http", switch, "engines may be reached over plain HTTP in staging and production, too",
        "EAI_MEMORY_ENGINES_ALLOW_HTTP",
    ),
    Setting("engines.instances", instances, "what the Manager rendered: a list, or a TOML file, which is watched"),
    Setting("openfga.url", HTTP, "OpenFGA; relations are decided in process without it"),
    Setting("openfga.store", a_text, "the id of its store"),
    Setting("openfga.model", a_text, "the id of the authorization model, pinned"),
    Setting("openfga.credential", reference, "a reference to its token"),
    Setting("openfga.timeout", SECONDS, "seconds"),
    Setting("opa.url", HTTP, "OPA; decisions are made in process without it"),
    Setting("opa.credential", reference, "a reference to its token"),
    Setting("opa.timeout", SECONDS, "seconds"),
    Setting("openbao.url", HTTP, "OpenBao; `openbao://` references cannot be used without it"),
    Setting("openbao.role", reference, "a reference (`env://`) to the role id of its AppRole"),
    Setting("openbao.secret", reference, "a reference (`env://`) to the secret id of its AppRole"),
    Setting("openbao.timeout", SECONDS, "seconds"),
    Setting("openbao.tenant_prefix", tenant_prefix, "what a tenant's own keys lie below"),
    Setting("gateway.url", HTTP, "the gateway's injection filter; the filter here is asked without it"),
    Setting("gateway.credential", reference, "a reference to its token"),
    Setting("gateway.timeout", SECONDS, "seconds"),
    Setting("oidc.issuer", HTTP, "who issues identities beside the tokens here"),
    Setting("oidc.audience", a_text, "for whom its tokens are issued"),
    Setting("oidc.jwks_url", HTTP, "where its keys are"),
    Setting("oidc.algorithms", algorithms, "the signatures that are accepted"),
    Setting("oidc.tenant_claim", claim, "where a token names the tenant; a dot leads into an object"),
    Setting("oidc.user_claim", claim, "where it names the user"),
    Setting("oidc.agent_claim", claim, "where it names the agent, if an agent has it"),
    Setting("oidc.roles_claim", claim, "where it lists roles; those that are ours count"),
    Setting("oidc.token_days", number(int, 1, 3650), "days that a token lasts at most that such an identity issues"),
    Setting("audit.sink", a_text, "also writes the audit as JSON lines: `stdout` or a file"),
)  # fmt: skip
_BY_NAME = {setting.name: setting for setting in SETTINGS}
assert {setting.field for setting in SETTINGS} | {"credentials"} == {one.name for one in fields(Config)}


def load(file: Path | None, environ: Mapping[str, str], **told: object) -> Config:
    """The settings of `file`, of the environment over them, and `told` (by field) over both.

    Raises:
        ConfigRefused: a setting is unknown, cannot be read, or is not safe enough; it names the setting.
    """
    values: dict[str, Any] = {}
    if file is not None:
        for name, value in _flat(_parsed(file)).items():
            setting = _BY_NAME.get(name)
            if setting is None:
                raise _unknown(name, f"{file.name} has a setting")
            values[setting.field] = _read(setting, value, f"`{name}` in {file.name}")
    for setting in SETTINGS:
        if environ.get(setting.variable):
            values[setting.field] = _read(setting, environ[setting.variable], setting.variable)
    _no_stranger(environ)
    given = {name: value for name, value in environ.items() if name.startswith(CREDENTIALS)}
    config = Config(**{**values, "credentials": given, **told})
    check(config)
    return config


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or ""
        raise ConfigRefused(
            f"The configuration {file.name} cannot be read.", why=f"{why}.", remedy="Name one."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigRefused(
            f"The configuration {file.name} is not TOML.", why=f"{error}.", remedy="Mend that line."
        ) from None


def _flat(document: Mapping[str, Any]) -> dict[str, Any]:
    """`{"opa": {"url": …}}` as `{"opa.url": …}`."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": more for inner, more in value.items()}
        else:
            found[name] = value
    return found


def _read(setting: Setting, value: Any, where: str) -> Any:
    try:
        return setting.read(value)
    except (ValueError, OSError) as error:
        raise ConfigRefused(
            f"The setting {where} is wrong.", why=f"It {error}.", remedy="docs/service.md lists all settings."
        ) from None


def _unknown(name: str, where: str) -> ConfigRefused:
    import difflib

    known = [*_BY_NAME, *(setting.variable for setting in SETTINGS)]
    near = difflib.get_close_matches(name, known, 1, 0.6)
    meant = f"Did you mean `{near[0]}`? " if near else ""
    return ConfigRefused(f"{where} `{name}` that nothing knows.", remedy=f"{meant}docs/service.md lists all settings.")


# Variables of the command line, which runs in the same environment.
_OTHERS = {"MEMORANDA_HOME", "MEMORANDA_AGENT", "MEMORANDA_SESSION", "MEMORANDA_CONFIG", "MEMORANDA_DATABASE_OWNER"}

_ANOTHERS = (CREDENTIALS, "MEMORANDA_GUARD_", "MEMORANDA_SERVICE_", "MEMORANDA_PORT")


def _no_stranger(environ: Mapping[str, str]) -> None:
    """A variable that looks like a setting and is none would be a setting that somebody believes is in force."""
    known = {setting.variable for setting in SETTINGS} | _OTHERS
    heads = ("EAI_MEMORY_ENGINES_", *{f"MEMORANDA_{name.split('.')[0].upper()}_" for name in _BY_NAME if "." in name})
    for name in sorted(environ):
        if name not in known and name.startswith(heads):
            raise _unknown(name, "The environment has a variable")


def strangers(environ: Mapping[str, str]) -> list[str]:
    """The variables that bear our names and that nothing reads, by name.

    They are not refused: a cluster sets some for a service that is called memoranda (`MEMORANDA_SERVICE_HOST`, …), and
    of `EAI_…` others read more than we do; of these only what is nearly one of ours is named.
    """
    import difflib

    known = {setting.variable for setting in SETTINGS} | _OTHERS
    ours = ("MEMORANDA_", "EAI_MEMORY_")
    return [
        name
        for name in sorted(environ)
        if name not in known
        and not name.startswith(_ANOTHERS)
        and (name.startswith(ours) or (name.startswith("EAI_") and difflib.get_close_matches(name, known, 1, 0.8)))
    ]


def check(config: Config) -> None:
    """ConfigRefused for settings that contradict each other, or that are not safe enough for the environment."""
    for together in (
        ("openfga_url", "openfga_store", "openfga_model"),
        ("openbao_url", "openbao_role", "openbao_secret"),
        ("oidc_issuer", "oidc_audience", "oidc_jwks_url"),
        ("tls_certificate", "tls_key"),
    ):
        lacking = [name for name in together if not getattr(config, name)]
        if lacking and len(lacking) < len(together):
            name, there = _name(lacking[0]), _name(next(name for name in together if name not in lacking))
            raise ConfigRefused(
                f"The setting `{name}` is missing.", why=f"`{there}` is set and needs it.", remedy=f"Set `{name}` too."
            )
    if config.homes_store == "postgresql" or (config.homes_secret and config.homes_store != "folders"):
        for name in ("database_url", "homes_secret"):
            if not getattr(config, name) or (name == "database_url" and not config.database_url.startswith(POSTGRES)):
                raise ConfigRefused(
                    f"The setting `{_name(name)}` is missing.",
                    why="Memories shall lie in PostgreSQL, their keys sealed by a secret that every node has.",
                    remedy=f"Set `database.url` to {POSTGRES}… and `homes.secret`; or `homes.store` to `folders`.",
                )
    for name in ("openbao_role", "openbao_secret"):
        if getattr(config, name) and not getattr(config, name).startswith("env://"):
            raise ConfigRefused(
                f"The setting `{_name(name)}` is wrong.", why="OpenBao cannot give what opens OpenBao.",
                remedy=f"Use env://{CREDENTIALS}….",
            )  # fmt: skip
    for setting in SETTINGS:
        value = getattr(config, setting.field)
        if setting.read is reference and value.startswith("env://") and not config.credentials.get(value[6:]):
            raise ConfigRefused(
                f"The setting `{setting.name}` names a variable that is not set.", remedy="Set the variable."
            )
        if setting.read is reference and value.startswith("openbao://") and not config.openbao_url:
            raise ConfigRefused(
                f"The setting `{setting.name}` needs OpenBao.", remedy="Set `openbao.url`, or use an env:// reference."
            )
    _, rendered = config.inventory.now()
    if config.database_url.startswith(POSTGRES) != bool(config.database_credential):
        raise ConfigRefused(
            "The setting `database.credential` is missing." if config.database_url.startswith(POSTGRES)
            else "The setting `database.credential` is for PostgreSQL only.",
            why="From the password is also made what proves to PostgreSQL which tenant a transaction is for.",
            remedy=f"Set `database.url` to {POSTGRES}… and `database.credential` to env://{CREDENTIALS}…, or neither.",
        )  # fmt: skip
    if len({one.id for one in rendered} - {"builtin"}) < len(rendered):
        raise ConfigRefused(
            "The setting `engines.instances` is wrong.", why="Two instances have the same id, or one is `builtin`.",
            remedy="Give each an id of its own.",
        )  # fmt: skip
    if config.strict:
        _check_strictly(config)


def _check_strictly(config: Config) -> None:
    """Staging and production: nothing insecure starts, and nothing is made weaker instead."""

    def refuse(setting: str, why: str, remedy: str) -> ConfigRefused:
        return ConfigRefused(f"The setting `{setting}` is refused in {config.environment}.", why=why, remedy=remedy)

    for instance in config.inventory.now()[1]:
        if instance.base_url.startswith("http://") and not config.engines_allow_http:
            raise refuse(
                "engines.instances", f"The instance {instance.id} is reached over plain HTTP.",
                "Use https, or allow it with EAI_MEMORY_ENGINES_ALLOW_HTTP.",
            )  # fmt: skip
        if not instance.tls_verify:
            raise refuse(
                "engines.instances", f"The instance {instance.id} is reached without verifying its certificate.",
                "Set tls_verify, and name its authority in EAI_MEMORY_ENGINES_CA_FILE.",
            )  # fmt: skip
    for setting in SETTINGS:
        value = getattr(config, setting.field)
        if setting.read is HTTP and value.startswith("http://") and urlsplit(value).hostname not in _LOOPBACK:
            raise refuse(setting.name, "It is plain HTTP to another machine.", "Use https.")
    if config.database_url.startswith(POSTGRES) and not _private(config.database_url):
        raise refuse(
            "database.url", "It reaches another machine without verifying it.",
            "Add `?sslmode=verify-full&sslrootcert=/path/ca.pem`.",
        )  # fmt: skip
    for name, value in sorted(config.credentials.items()):
        if EXAMPLE in value.lower():
            raise refuse(name, "It holds the example of the documents.", "Set a credential of your own.")
    if config.log_level == "debug":
        raise refuse("log_level", "Libraries say more than they should at that level.", "Use info.")


def _private(url: str) -> bool:
    """Whether nobody between the service and PostgreSQL could listen, or take its place."""
    parts, told = urlsplit(url), dict(parse_qsl(urlsplit(url).query))
    hosts = (told.get("host") or parts.hostname or "").split(",")
    near = all(host in ("", *_LOOPBACK) or host.startswith("/") for host in hosts)
    return near or told.get("sslmode") == "verify-full"


def _name(attribute: str) -> str:
    return next(setting.name for setting in SETTINGS if setting.field == attribute)
