"""Settings: defaults, then the file, then the environment; what is wrong or unsafe is refused by its name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memoranda.errors import ConfigRefused
from memoranda.faces.http.config import SETTINGS, Config, load

INSTANCE = '[[engines.instances]]\nid = "m"\nprovider = "mem0"\nbase_url = "{url}"\ntls_verify = {verify}\n'


def written(folder: Path, text: str) -> Path:
    file = folder / "memoranda.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_environment_is_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    file = written(tmp_path, 'threads = 4\ntimeout = 2\nlisten = "[::1]:9"\n[opa]\nurl = "https://opa/"\n')
    config = load(file, {"MEMORANDA_THREADS": "5"})
    assert (config.threads, config.timeout, config.address) == (5, 2.0, ("::1", 9))
    assert (config.opa_url, config.opa_timeout, config.environment) == ("https://opa", 2.0, "production")
    assert load(None, {}) == Config()


def test_the_environment_is_production_until_somebody_says_otherwise() -> None:
    assert load(None, {}).environment == "production" and load(None, {}).strict
    assert not load(None, {"EAI_ENVIRONMENT": "development"}).strict


@pytest.mark.parametrize(
    ("text", "environ", "named"),
    [
        ("thread = 4", {}, "thread"),
        ("[opa]\nulr = 'https://a'", {}, "opa.ulr"),
        ("[nobody]\nurl = 'https://a'", {}, "nobody.url"),
        ("threads = 'many'", {}, "threads"),
        ("threads = 0", {}, "threads"),
        ("threads = true", {}, "threads"),
        ("threads = 1.5", {}, "threads"),
        ("listen = '8080'", {}, "listen"),
        ("listen = 'a:99999'", {}, "listen"),
        ("", {"EAI_ENVIRONMENT": "prod"}, "EAI_ENVIRONMENT"),
        ("", {"EAI_MEMORY_ENGINES_CA_FILE": "/nowhere/ca.pem"}, "EAI_MEMORY_ENGINES_CA_FILE"),
        ("", {"EAI_MEMORY_ENGINES_ALLOW_HTTPS": "1"}, "EAI_MEMORY_ENGINES_ALLOW_HTTPS"),
        ("", {"MEMORANDA_OPA_ULR": "https://a"}, "MEMORANDA_OPA_ULR"),
        ("[openfga]\nurl = 'https://a'", {}, "openfga.store"),
        ("[oidc]\nissuer = 'https://a'\naudience = 'm'", {}, "oidc.jwks_url"),
        ("[opa]\nurl = 'https://name:word@a'", {}, "opa.url"),
        ("[opa]\nurl = 'ftp://a'", {}, "opa.url"),
        ("[opa]\ncredential = 'hunter2'", {}, "opa.credential"),
        ("[opa]\ncredential = 'env://EAI_CRED_OPA'", {}, "opa.credential"),
        ("[opa]\ncredential = 'openbao://kv/a#b'", {}, "opa.credential"),
        ("[database]\nurl = 'mysql://a'", {}, "database.url"),
        ("[openbao]\ntenant_prefix = 'openbao://kv/tenants/'", {}, "openbao.tenant_prefix"),
        ("[openbao]\ntenant_prefix = 'openbao://kv/{tenant}'", {}, "openbao.tenant_prefix"),
        ("[openbao]\ntenant_prefix = 'openbao://kv/../{tenant}/'", {}, "openbao.tenant_prefix"),
        ("[openbao]\ntenant_prefix = 'openbao://kv/{tenant}{tenant}/'", {}, "openbao.tenant_prefix"),
        ("[oidc]\nalgorithms = ['none']", {}, "oidc.algorithms"),
        ("[oidc]\nalgorithms = ['HS256']", {}, "oidc.algorithms"),
        (INSTANCE.format(url="https://a", verify="true") * 2, {}, "engines.instances"),
        ("engines = 3", {}, "engines"),
        ("[[engines.instances]]\nid = 'm'", {}, "engines.instances"),
    ],
)
def test_what_is_unknown_or_wrong_is_refused_by_its_name(
    tmp_path: Path, text: str, environ: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigRefused) as refused:
        load(written(tmp_path, text), environ)
    assert f"`{named}`" in refused.value.what or refused.value.what.startswith(f"The setting {named} ")
    assert "hunter2" not in str(refused.value) and refused.value.remedy


INSECURE = [
    (INSTANCE.format(url="http://mem0", verify="true"), {}, "engines.instances"),
    (INSTANCE.format(url="https://mem0", verify="false"), {}, "engines.instances"),
    ("[opa]\nurl = 'http://opa.internal:8181'", {}, "opa.url"),
    ("[gateway]\nurl = 'http://gateway'", {}, "gateway.url"),
    ("", {"EAI_CRED_OPA": "example-token"}, "EAI_CRED_OPA"),
    ("log_level = 'debug'", {}, "log_level"),
]


@pytest.mark.parametrize("environment", ["staging", "production"])
@pytest.mark.parametrize(("text", "environ", "named"), INSECURE)
def test_insecure_settings_do_not_start(
    tmp_path: Path, environment: str, text: str, environ: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigRefused, match=rf"`{named}` is refused in {environment}"):
        load(written(tmp_path, text), {"EAI_ENVIRONMENT": environment, **environ})


@pytest.mark.parametrize(("text", "environ", "named"), INSECURE)
def test_the_same_settings_start_in_development(tmp_path: Path, text: str, environ: dict[str, str], named: str) -> None:
    load(written(tmp_path, text), {"EAI_ENVIRONMENT": "development", **environ})


def test_what_may_be_allowed_is_allowed(tmp_path: Path) -> None:
    file = written(tmp_path, INSTANCE.format(url="http://mem0", verify="true"))
    assert load(file, {"EAI_MEMORY_ENGINES_ALLOW_HTTP": "true"}).engines_instances[0].id == "m"
    assert load(written(tmp_path, "[opa]\nurl = 'http://127.0.0.1:8181'"), {}).opa_url


def test_credentials_are_never_shown() -> None:
    config = load(None, {"EAI_CRED_OPA": "s3cr3t-of-opa", "MEMORANDA_OPA_CREDENTIAL": "env://EAI_CRED_OPA"})
    assert config.credentials["EAI_CRED_OPA"] == "s3cr3t-of-opa"
    assert "s3cr3t" not in repr(config)


def test_every_setting_has_a_variable_of_its_own() -> None:
    assert len({setting.variable for setting in SETTINGS}) == len(SETTINGS)


def test_the_documents_list_every_setting_with_its_variable_and_its_default() -> None:
    page = (Path(__file__).parents[3] / "docs/service.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z._]+)` \| `([A-Z_]+)` \|", page, re.M))
    assert rows == {setting.name: setting.variable for setting in SETTINGS}
    for setting in SETTINGS:
        default = getattr(Config(), setting.field)
        if isinstance(default, str | int | float) and default and not isinstance(default, bool):
            shown = f"{default:g}" if isinstance(default, float) else default
            assert f"| `{setting.variable}` | `{shown}` | {setting.about} |" in page
