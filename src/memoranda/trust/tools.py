"""Which tools of an agent bring in content from outside, from the tool's name and arguments alone.

What cannot be judged counts as outside: a tool of a name unknown here, a server that nobody trusts. What a tool reads
from this machine's own files is not outside, although it may have come from there by another way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from memoranda.notes.lazyre import lazy
from memoranda.values import dataclass

OWN_SERVER = (
    "memoranda"  # what our server is called when it is set up as the documents say; its recalls taint by themselves
)
TRUST_KINDS = ("tool", "server", "domain")

# Tools of Claude Code that work on this machine's files and on the conversation itself.
_INSIDE = frozenset(
    "Read Write Edit MultiEdit NotebookRead NotebookEdit Glob Grep LS LSP TodoRead TodoWrite Task Agent TaskCreate"
    " TaskGet TaskList TaskUpdate TaskOutput TaskStop BashOutput KillShell KillBash EnterPlanMode ExitPlanMode"
    " AskUserQuestion Skill SlashCommand ToolSearch EnterWorktree ExitWorktree StructuredOutput SendMessage CronCreate"
    " CronDelete CronList TeamCreate TeamDelete ListMcpResourcesTool".split()
)
_SHELLS = frozenset(("Bash", "PowerShell", "Monitor", "REPL"))
_LOCAL = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0"))
_COMMAND = r"(?:^|[\s;&|(){}`'\"!=/])"  # where the name of a program can begin
_PROGRAMS = (
    "curl|curlie|wget2?|aria2c|axel|https?|xh|httpie|hurl|lynx|w3m|links2?|elinks|ftp|lftp|sftp|scp|ssh|telnet|ncat|nc"
    "|netcat|socat|yt-dlp|youtube-dl|gh|glab|hub|tea|mutt|neomutt|mailx?|himalaya|fetchmail|getmail|mbsync|offlineimap"
    "|Invoke-WebRequest|Invoke-RestMethod|iwr|irm|Start-BitsTransfer"
)
_FETCHES = lazy(rf"{_COMMAND}({_PROGRAMS})(?:\.exe)?(?=\s)", re.IGNORECASE)
_REMOTE_COPY = lazy(rf"{_COMMAND}(git (?:clone|submodule (?:add|update))|rsync [^\n;|&]*?[\w.@-]+::?(?=[\w/~.]))")
_IN_CODE = lazy(
    r"(urllib\.request|urlopen|\brequests\.(?:get|post|request|Session)|\bhttpx\b|\baiohttp\b|http\.client|\bfetch\("
    r"|\bhttps?\.get\(|Net::HTTP|open-uri|LWP::|file_get_contents\(\s*['\"]https?:|/dev/(?:tcp|udp)/|imaplib|poplib)"
)
_URL = lazy(r"\b[a-z][a-z0-9+.-]*://[^\s\"'`<>|;&(){}]+", re.IGNORECASE)
_HOST = lazy(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|[0-9a-f:]{2,39}")
_LABEL = 24  # characters
_NAME = lazy(r"[A-Za-z0-9_.:-]{1,100}")


@dataclass(frozen=True, slots=True)
class Trusted:
    """What a person trusts: tools by their full name, MCP servers, and domains with all that lies below them."""

    tools: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Brought:
    """What brought outside content in: the tool, with the host where it is known, and why it counts as outside."""

    source: str
    reason: str


def may_bring(tool: str) -> bool:
    """False for a tool that never brings anything in from outside, whatever its arguments; quick."""
    return tool not in _INSIDE


def brought(tool: str, arguments: Mapping[str, object], trusted: Trusted) -> Brought | None:
    """What a call of this tool brought in from outside, None when nothing."""
    name = tool if _NAME.fullmatch(tool) else "a tool with an odd name"
    if not may_bring(tool) or tool in trusted.tools:
        return None
    if tool in _SHELLS:
        return _by_command(name, " ".join(_texts(arguments.get("command"), arguments.get("code"))), trusted)
    server = _server(tool, arguments)
    if server is not None:
        if server == OWN_SERVER or server in trusted.servers:
            return None
        return Brought(name, "an MCP server that is not on the list of trusted ones")
    host = host_of(str(arguments.get("url") or ""))
    if tool == "WebFetch":
        return None if _trusts(host, trusted) else Brought(f"{name} {_shown(host)}".strip(), "a page of the web")
    if tool == "WebSearch":
        return Brought(name, "a search of the web")
    return Brought(name, "a tool that is not known to stay on this machine")


def host_of(url: str) -> str:
    """The host that a URL names, in lower case; empty when it names none, or one that cannot be told for certain."""
    from urllib.parse import urlsplit

    if "\\" in url or not url.isprintable() or " " in url:  # programs differ on what such a URL means
        return ""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
    return host if _HOST.fullmatch(host) else ""


def _shown(host: str) -> str:
    """A host as the ledger keeps it: without the long labels in which something can be carried along."""
    return ".".join(label if len(label) <= _LABEL else "…" for label in host.split("."))


def _server(tool: str, arguments: Mapping[str, object]) -> str | None:
    """The MCP server that a tool belongs to, None when it is none of a server."""
    if tool == "ReadMcpResourceTool":
        return str(arguments.get("server") or "?")
    if not tool.startswith("mcp__"):
        return None
    return tool.removeprefix("mcp__").partition("__")[0]


def _trusts(host: str, trusted: Trusted) -> bool:
    if not host:
        return False
    return host in _LOCAL or any(host == domain or host.endswith(f".{domain}") for domain in trusted.domains)


def _by_command(tool: str, command: str, trusted: Trusted) -> Brought | None:
    found = _FETCHES.search(command) or _REMOTE_COPY.search(command) or _IN_CODE.search(command)
    if found is None:
        return None
    hosts = [host_of(url) for url in _URL.findall(command)]
    strange = [host for host in hosts if not _trusts(host, trusted)]
    if hosts and not strange:
        return None
    program = " ".join(found.group(1).split()[:2]) if found.re.groups else ""
    host = next(filter(None, strange), "")
    return Brought(f"{tool} {_shown(host)}".strip(), f"a command that fetches ({program[:40]})")


def _texts(*values: object) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
