"""The two engines that the launchers know: their secrets, their ports, and what each is started with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from memoranda.values import dataclass, field

Kind = Literal["mem0", "cognee"]
KINDS: tuple[Kind, ...] = ("mem0", "cognee")
SECRETS: dict[Kind, tuple[str, ...]] = {
    "mem0": ("admin_api_key", "jwt_secret", "admin_password"),
    "cognee": (
        "admin_password", "service_api_key", "jwt_secret", "reset_password_secret", "verification_secret",
        "api_key_salt",
    ),
}  # fmt: skip
API_KEY: dict[Kind, str] = {"mem0": "admin_api_key", "cognee": "service_api_key"}  # what the service enters with
CREDENTIAL: dict[Kind, str] = {"mem0": "EAI_CRED_MEMORY_MEM0_API_KEY", "cognee": "EAI_CRED_MEMORY_COGNEE_API_KEY"}
PORTS: dict[Kind, int] = {"mem0": 8701, "cognee": 8702}
ADMINISTRATOR = "administrator@memoranda.example"
COGNEE_VERSION = "1.6.5"
GUARD = "MEMORANDA_GUARD_"  # as in guard.py, which cannot import this
# Variables that an operator may never set for an engine: they are what the guarantees stand on.
_TELEMETRY = {
    "RUNTIME__DLTHUB_TELEMETRY": "false", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Models:
    """The language model and the embedder that an engine asks: one server that speaks OpenAI's protocol.

    `credential` is a reference (`env://EAI_CRED_…`, `openbao://…`) to its key, empty where it asks for none;
    `dimensions` are those of the embedder's vectors.
    """

    url: str
    model: str = "gpt-4o-mini"
    embedder: str = "text-embedding-3-small"
    dimensions: int = 1536
    credential: str = ""


@dataclass(frozen=True, slots=True)
class Postgres:
    """Where Mem0 keeps what it has: PostgreSQL with pgvector; `credential` is a reference to the password."""

    host: str
    port: int
    user: str
    database: str = "postgres"
    credential: str = ""


@dataclass(frozen=True, slots=True)
class Engine:
    """One installed engine, as it stands in `engine.json`. It holds no secret.

    `tenant` is the one that it is for alone, None for a shared one; `cluster` and `service` name it in the inventory;
    `python` is the engine's own interpreter, `server` the folder of Mem0's server; `more` are further variables of
    the engine's own that the operator has set.
    """

    id: str
    kind: Kind
    port: int
    tenant: str | None
    cluster: str
    service: str
    models: Models
    python: str
    version: str
    server: str = ""
    postgres: Postgres | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def environment(
    engine: Engine, folder: Path, secrets: Mapping[str, str], model_key: str, database_password: str
) -> dict[str, str]:
    """Everything that the engine's process is given; `folder` is the engine's own."""
    own = (
        _mem0(engine, folder, secrets, database_password) if engine.kind == "mem0" else _cognee(engine, folder, secrets)
    )
    key = model_key or "none"
    asked = {"mem0": _mem0_models, "cognee": _cognee_models}[engine.kind](engine.models, key)
    guard = {"ENGINE": engine.kind, "PORT": str(engine.port), "ADMIN_EMAIL": ADMINISTRATOR,
             "ADMIN_PASSWORD": secrets["admin_password"]}  # fmt: skip
    if engine.kind == "cognee":
        guard["SERVICE_API_KEY"] = secrets["service_api_key"]
    else:
        guard["SERVER_DIR"] = engine.server
    return {
        "HOME": str(folder / "data"), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **asked, **engine.more, **own,
        **{f"{GUARD}{name}": value for name, value in guard.items()},
    }  # fmt: skip


def _mem0(engine: Engine, folder: Path, secrets: Mapping[str, str], password: str) -> dict[str, str]:
    data, postgres = folder / "data", engine.postgres
    assert postgres is not None  # an installation has seen to it
    return {
        "AUTH_DISABLED": "false", "MEM0_TELEMETRY": engine.more.get("MEM0_TELEMETRY", "false"),
        "ADMIN_API_KEY": secrets["admin_api_key"], "JWT_SECRET": secrets["jwt_secret"],
        "MEM0_DIR": str(data / "mem0"), "HISTORY_DB_PATH": str(data / "history.db"),
        "MEM0_TELEMETRY_STATE_PATH": str(data / "telemetry.json"), "DO_NOT_TRACK": "1",
        "POSTGRES_HOST": postgres.host, "POSTGRES_PORT": str(postgres.port), "POSTGRES_DB": postgres.database,
        "POSTGRES_USER": postgres.user, "POSTGRES_PASSWORD": password, "APP_DB_NAME": "mem0_app",
        "POSTGRES_COLLECTION_NAME": "memories",
    }  # fmt: skip


def _mem0_models(models: Models, key: str) -> dict[str, str]:
    return {
        "OPENAI_API_KEY": key, "OPENAI_BASE_URL": models.url, "MEM0_DEFAULT_LLM_MODEL": models.model,
        "MEM0_DEFAULT_EMBEDDER_MODEL": models.embedder,
    }  # fmt: skip


def _cognee(engine: Engine, folder: Path, secrets: Mapping[str, str]) -> dict[str, str]:
    data = folder / "data"
    packages = Path(engine.python).parent.parent / "lib" / f"python{_minor(engine)}" / "site-packages"
    off = {
        "REQUIRE_AUTHENTICATION": "true", "ENABLE_BACKEND_ACCESS_CONTROL": "true", "HASH_API_KEY": "true",
        "TELEMETRY_DISABLED": "1", **_TELEMETRY, "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        # Completions keep a session and put it before the next question: one dataset's words in another's answer.
        "CACHING": "false", "COGNEE_LOG_SEARCH_HISTORY": "false", "COGNEE_LOG_FILE": "false", "LOG_LEVEL": "WARNING",
        "GRAPH_DATABASE_SUBPROCESS_ENABLED": "false", "VECTOR_DB_SUBPROCESS_ENABLED": "false",
        # Local paths must be accepted for uploads to be stored at all; the only folder they may lie in is empty.
        "ACCEPT_LOCAL_FILE_PATH": "true", "COGNEE_ALLOWED_LOCAL_FILE_ROOTS": str(folder / "nothing"),
        # It would else search the folders above for a `.env`, and believe it more than its environment.
        "COGNEE_ENV_FILE": str(folder / "empty.env"),
        "TIKTOKEN_CACHE_DIR": str(packages / "litellm/litellm_core_utils/tokenizers"),
    }  # fmt: skip
    return {
        **off, "ALLOW_HTTP_REQUESTS": engine.more.get("ALLOW_HTTP_REQUESTS", "false"),
        "ALLOW_CYPHER_QUERY": engine.more.get("ALLOW_CYPHER_QUERY", "false"),
        "DEFAULT_USER_EMAIL": ADMINISTRATOR, "DEFAULT_USER_PASSWORD": secrets["admin_password"],
        "FASTAPI_USERS_JWT_SECRET": secrets["jwt_secret"],
        "FASTAPI_USERS_RESET_PASSWORD_TOKEN_SECRET": secrets["reset_password_secret"],
        "FASTAPI_USERS_VERIFICATION_TOKEN_SECRET": secrets["verification_secret"],
        "API_KEY_HASH_SALT": secrets["api_key_salt"], "DATA_ROOT_DIRECTORY": str(data / "documents"),
        "SYSTEM_ROOT_DIRECTORY": str(data / "system"), "CACHE_ROOT_DIRECTORY": str(data / "cache"),
        "COGNEE_LOGS_DIR": str(data / "logs"),
    }  # fmt: skip


def _cognee_models(models: Models, key: str) -> dict[str, str]:
    return {
        "LLM_PROVIDER": "openai", "LLM_MODEL": f"openai/{models.model}", "LLM_ENDPOINT": models.url,
        "LLM_API_KEY": key, "EMBEDDING_PROVIDER": "openai", "EMBEDDING_MODEL": f"openai/{models.embedder}",
        "EMBEDDING_ENDPOINT": models.url, "EMBEDDING_API_KEY": key, "EMBEDDING_DIMENSIONS": str(models.dimensions),
    }  # fmt: skip


def _minor(engine: Engine) -> str:
    found = sorted((Path(engine.python).parent.parent / "lib").glob("python3.*"))
    return found[0].name.removeprefix("python") if found else f"{sys.version_info[0]}.{sys.version_info[1]}"
