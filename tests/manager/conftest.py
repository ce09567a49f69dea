"""A manager in a folder of its own, and an interpreter that has a stand-in for Cognee where the real one would be."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.manager.kinds import Engine, Models
from memoranda.manager.place import Place, engines
from memoranda.manager.running import down
from memoranda.manager.sealing import FileVault

ROOT = Path(__file__).parent.parent.parent
# As much of Cognee's own modules as the guard imports, over the stand-in's store.
_PACKAGE = {
    "cognee/api/client.py": """
import os
from pathlib import Path
from tests.cognee_standin import Asgi, Cognee
cognee = Cognee(os.environ, Path(os.environ["SYSTEM_ROOT_DIRECTORY"]) / "standin.json")
if os.environ.get("STANDIN_SPEAKS"):
    print("my salt is", os.environ["API_KEY_HASH_SALT"])
app = Asgi(cognee)
""",
    "cognee/infrastructure/databases/relational/__init__.py": """
from contextlib import asynccontextmanager
class Engine:
    @asynccontextmanager
    async def get_async_session(self):
        yield None
get_relational_engine = Engine
""",
    "cognee/modules/users/get_user_db.py": """
from contextlib import asynccontextmanager
from cognee.api.client import cognee
class Users:
    async def update(self, user, changes):
        user.update(changes)
        cognee.keep()
@asynccontextmanager
async def get_user_db_context(session):
    yield Users()
""",
    "cognee/modules/users/get_user_manager.py": """
from contextlib import asynccontextmanager
from cognee.api.client import cognee
from fastapi_users.exceptions import UserNotExists
from tests.cognee_standin import hashed
class Manager:
    class password_helper:
        hash = staticmethod(hashed)
    async def get_by_email(self, email):
        if email not in cognee.told["users"]:
            raise UserNotExists
        return cognee.told["users"][email]
@asynccontextmanager
async def get_user_manager_context(users):
    yield Manager()
""",
    "fastapi_users/exceptions.py": "class UserNotExists(Exception): pass\n",
    "cognee-1.6.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: cognee\nVersion: 1.6.5\n",
}


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the stand-in."""
    own = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(own)], check=True)
    packages = next((own / "lib").glob("python3*")) / "site-packages"
    (packages / "beside.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    for name, text in _PACKAGE.items():
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return own


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "manager"
    made = Place(folder, FileVault(folder / "sealed", folder / "seal.key"), {"env://K": "model-key-0123"}.__getitem__,
                 {}, os.urandom)  # fmt: skip
    yield made
    for engine in engines(made):
        down(made, engine.id)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def cognee(engine: str = "cognee", tenant: str | None = None, **more: str) -> Engine:
    models = Models("http://127.0.0.1:9/v1", credential="env://K")
    return Engine(engine, "cognee", free_port(), tenant, "local", engine, models, "", "", more=more)
