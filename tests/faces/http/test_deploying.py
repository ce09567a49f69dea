"""The configuration that docs/deploy.md hands out is one that the program accepts, and no longer when it is cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memoranda.errors import ConfigRefused
from memoranda.faces.http.config import load

FILE = Path(__file__).parents[3] / "examples" / "deploy" / "memoranda.toml"


def environment() -> dict[str, str]:
    """A value for each variable that the file names."""
    named = re.findall(r"env://(EAI_CRED_\w+)", FILE.read_text(encoding="utf-8"))
    return {name: f"of the test, {name}" for name in named}


def on_this_machine(folder: Path, text: str) -> Path:
    """The file, with a certificate that is there."""
    for name in ("tls.crt", "tls.key"):
        (folder / name).write_text("-", encoding="utf-8")
    written = folder / "memoranda.toml"
    written.write_text(text.replace("/etc/memoranda/", f"{folder}/"), encoding="utf-8")
    return written


def test_the_example_is_accepted_in_production(tmp_path: Path) -> None:
    config = load(on_this_machine(tmp_path, FILE.read_text(encoding="utf-8")), environment())
    assert config.environment == "production"
    assert config.homes_on_postgresql
    assert config.openfga_url
    assert config.opa_url
    assert config.openbao_url


@pytest.mark.parametrize(
    ("cut", "setting"),
    [
        (r'secret = "env://EAI_CRED_BAO_SECRET"\n', "openbao.secret"),
        (r'model = "[^"]+"\n', "openfga.model"),
    ],
)
def test_what_is_left_out_is_named(tmp_path: Path, cut: str, setting: str) -> None:
    path = on_this_machine(tmp_path, re.sub(cut, "", FILE.read_text(encoding="utf-8")))
    with pytest.raises(ConfigRefused, match=setting):
        load(path, environment())


def test_plain_http_to_another_machine_is_refused(tmp_path: Path) -> None:
    path = on_this_machine(tmp_path, FILE.read_text(encoding="utf-8").replace("https://opa", "http://opa"))
    with pytest.raises(ConfigRefused, match=r"opa\.url"):
        load(path, environment())
