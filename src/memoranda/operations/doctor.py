"""Doctor: finds what is wrong with a Home, explains it, and mends only what cannot lose anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from memoranda.context import Context
from memoranda.errors import Erased, GitFailed, IndexDamaged, MemorandaError, NotFound
from memoranda.home.ledger import Pen
from memoranda.home.settings import Settings
from memoranda.home.store import LEDGER_REF
from memoranda.index.indexes import REBUILDING
from memoranda.index.keepout import refused
from memoranda.index.status import index_states
from memoranda.notes.chains import Chains
from memoranda.notes.pointers import parse_pointer
from memoranda.operations.admission import admit
from memoranda.operations.findings import Check, Finding
from memoranda.operations.holding import held_notes
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.returning import returned
from memoranda.operations.review_findings import review_findings
from memoranda.operations.space import Space
from memoranda.trust.secrets import masked_path
from memoranda.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Report:
    """What doctor found in one Home; `ok` when nothing is left but notices."""

    home: str
    root: str
    notes: int
    journal: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.fixed or finding.severity == "notice" for finding in self.findings)

    def json(self) -> dict[str, object]:
        return {
            "home": self.home, "root": self.root, "ok": self.ok, "notes": self.notes, "journal": self.journal,
            "findings": [finding.json() for finding in self.findings],
        }  # fmt: skip


def doctor(context: Context, space: Space, *, fix: bool = False) -> Report:
    """Examines the nearest Home. With `fix` stale indexes, leftovers and Git's index are mended, nothing else.

    An index that is damaged is made again in either case, since the rest is looked up in it.
    """
    pass_guards(context, Call("doctor"))
    home = space.one()
    before = [*_indexes(home), *_leftovers(home)]
    home.repository.look(context)
    before = [_mended(home, finding) if fix or finding.code == "index_damaged" else finding for finding in before]
    home.refresh(context)
    findings = [*before]
    for check in _CHECKS:
        findings += check(home) if check is _repository else _checked(home, check)
    with home.indexes.lock:
        totals = home.indexes.catalog.totals()
    return Report(home.name, str(home.repository.root), totals.notes, totals.entries, tuple(findings))


@undisturbed
def _checked(home: OpenHome, check: Check) -> list[Finding]:
    return list(check(home))


# The caches and what a killed process left


def _indexes(home: OpenHome) -> Iterator[Finding]:
    states = {
        "missing": ("notice", "does not exist", "It is made at the next recall."),
        "damaged": ("warning", "cannot be read", "It is thrown away; the next recall makes it again."),
        "foreign": ("warning", "was made by another recipe or version", "`memoranda doctor --fix` throws it away."),
    }
    for status in index_states(home.indexes):  # that one is behind is nothing to tell: every read brings it up
        if status.serves and status.state in ("fresh", "behind") and (why := _damage(home, status.name)):
            severity, what, remedy = states["damaged"]
            yield Finding("index_damaged", severity, status.name, f"The index {what}: {why}.", remedy)
        elif status.state in states and (status.serves or status.state in ("damaged", "foreign")):
            severity, what, remedy = states[status.state]
            yield Finding(f"index_{status.state}", severity, status.name, f"The index {what}.", remedy)


def _damage(home: OpenHome, name: str) -> str | None:
    """What is wrong inside an index that can be opened; None when all of it can be read."""
    try:
        home.indexes.check(name)
        return None
    except IndexDamaged as error:
        return error.why or error.what


def _leftovers(home: OpenHome) -> Iterator[Finding]:
    for path in home.in_folder.store.leftovers() if home.in_folder is not None else ():
        remedy = "`memoranda doctor --fix` removes it."
        yield Finding("leftover", "notice", path, "A killed process left this file in Git's folder.", remedy)
    if home.indexes.sweep(only_look=True):
        remedy = "`memoranda doctor --fix` removes it."
        yield Finding("leftover", "notice", REBUILDING, "A killed rebuild left this folder beside the indexes.", remedy)


def _mended(home: OpenHome, finding: Finding) -> Finding:
    if finding.code in ("index_damaged", "index_foreign"):
        home.indexes.drop(finding.where)
    elif finding.code == "leftover":
        home.on_disk.store.sweep()
        home.indexes.sweep()
    elif finding.code == "index_missing":
        home.indexes.catch_up()
    return replace(finding, fixed=True)


# The notes


def _unreadable(home: OpenHome) -> Iterator[Finding]:
    for row in home.indexes.catalog.with_problems():
        yield Finding(
            "note_odd", "notice", row.path, f"Not everything in this note is understood: {'; '.join(row.problems)}.",
            "It is kept and recalled as it is; mend it in an editor if you like.",
        )  # fmt: skip
    outside = home.in_folder.outside if home.in_folder is not None else None
    for path, reason in sorted(outside.strange.items()) if outside is not None else ():
        mend = "Give it another name" if "its name" in reason else "Put a regular file in its place that you may read"
        what = f"This file is not taken in: {reason.rstrip('.')}."
        yield Finding("file_left_alone", "warning", masked_path(path), what, f"{mend}, or move it away.")
    for path in outside.closed() if outside is not None else ():
        yield Finding(
            "folder_closed", "warning", masked_path(path),
            "This folder cannot be read: what changes in it is not seen, and nothing can be written to it.",
            "Give yourself the right to read and write it (`chmod u+rwx`).",
        )  # fmt: skip
    for path, reason in sorted(home.repository.refused.items()):
        yield Finding(
            "file_refused", "warning", masked_path(path), f"This file is not taken in: {reason}", "Change it and save."
        )


def _chains(home: OpenHome) -> Iterator[Finding]:
    catalog = home.indexes.catalog
    chains = Chains(row.link() for row in catalog.linked_notes())
    tombs = home.tombs.now()
    for new, old in chains.unknown():
        if tombs.of_id(old) is not None:
            continue  # it was forgotten, or its retention ended
        yield Finding(
            "supersedes_unknown", "warning", new, f"It supersedes {old}, which no note of this Home is.",
            "Bring the missing note back, or correct the field `supersedes`.",
        )  # fmt: skip
    for cycle in chains.cycles():
        yield Finding(
            "supersedes_cycle", "error", cycle[0], f"These notes supersede each other in a circle: {', '.join(cycle)}.",
            "Correct the field `supersedes` of one of them; until then all of them are shown.",
        )  # fmt: skip


def _same_id(home: OpenHome) -> Iterator[Finding]:
    for note_id, paths in home.indexes.catalog.shared_ids().items():
        yield Finding(
            "same_id", "warning", paths[0], f"{len(paths)} files have the id {note_id}: {', '.join(paths)}.",
            "Give all but one a new id, or delete the copies.",
        )  # fmt: skip


def _sources(home: OpenHome) -> Iterator[Finding]:
    names = home.repository.marker.names()
    for note_id, path, source in home.indexes.catalog.nas_sources():
        try:
            pointer = parse_pointer(source)
            if pointer.home not in names:
                continue
            data = home.repository.at(pointer.path, pointer.rev)
            if pointer.end is not None and pointer.end > max(1, len(data.splitlines())):
                raise NotFound("It ends before these lines.")
        except Erased:
            continue  # it leads to what was there: "erased on", with the day
        except MemorandaError as error:
            yield Finding(
                "source_dangling", "warning", path, f"{note_id} cites {source}, which leads nowhere. {error.what}",
                "Bring the cited commit here (`git fetch`), or correct the source.",
            )  # fmt: skip


# What is forgotten


def _forgotten(home: OpenHome) -> Iterator[Finding]:
    for item in returned(home):
        yield Finding(
            "forgotten_returned", "warning", item.path,
            f"{item.about} was {'forgotten' if item.blob else 'erased'}, and stands in this file again. It is hidden.",
            "`memoranda forget --returned` takes it away again, with --erase out of history too."
            if item.blob else "`memoranda forget --returned --erase` takes it out again.",
        )  # fmt: skip
    for (owner, key), count in home.tombs.now().unchecked().items():
        yield Finding(
            "forgotten_unchecked", "warning", f"key {key} of {owner}",
            f"{count} forgotten content(s) cannot be known again here, since the key is missing.",
            "`memoranda key export` where they were forgotten, and `memoranda key import` here.",
        )  # fmt: skip


def _refused(home: OpenHome) -> Iterator[Finding]:
    """What commits brought in and no operation would have taken; the reason tells kind and place, not what it says."""
    for item in refused(home.indexes.catalog.db):
        entry = home.indexes.catalog.entry(item.about) if not item.blob else None
        lines = f" Lines {entry.first} to {entry.last}." if entry else ""
        data = home.repository.blob(item.blob) if item.blob else None
        why = admit(data, item.path, home.rules) if data is not None else None
        yield Finding(
            "secret_committed", "error", masked_path(item.path),
            f"A commit brought in what is refused here, so it is not shown.{lines} {_sentence(why)}".rstrip(),
            "Take it out of the file and commit that; Git's history keeps it until `memoranda forget … --erase`."
            " What was allowed is shown after `memoranda index rebuild`.",
        )  # fmt: skip


def _sentence(text: str | None) -> str:
    return f"{text[:1].upper()}{text[1:]}" if text else ""


def _held(home: OpenHome) -> Iterator[Finding]:
    for item in held_notes(home):
        if item.path is None:
            yield Finding(
                "held_missing", "warning", item.id, "It is under legal hold, and no file has it any more.",
                "Git's history has it: `git log --diff-filter=D -- memory` shows where it went.",
            )  # fmt: skip


# Git and the ledger


_ELSEWHERE = ("missing ", "broken link", "              to ")  # what Git says of objects that it was to leave out


def _is_partial(home: OpenHome) -> bool:
    return home.in_folder is not None and any(home.in_folder.layout.objects.glob("pack/*.promisor"))


def _repository(home: OpenHome) -> Iterator[Finding]:
    try:
        told = list(home.repository.verify())
        elsewhere = [line for line in told if line.startswith(_ELSEWHERE)] if _is_partial(home) else []
        if elsewhere:
            yield Finding(
                "clone_partial", "warning", ".git",
                "This is a partial clone: some of its history lies elsewhere, and pointers to that lead nowhere.",
                "Bring all of it here: `git fetch --refetch --no-filter`.",
            )  # fmt: skip
        for line in told:
            if line in elsewhere:
                continue
            yield Finding(
                "repository_damaged", "error", ".git", f"Git finds damage: {line}",
                "Restore the object from a clone (`git fetch`) or a backup.",
            )  # fmt: skip
    except GitFailed as error:
        yield Finding("repository_damaged", "error", ".git", error.what, error.remedy)
    reason = home.repository.flush(wait=True)
    if reason is not None:
        yield Finding(
            "commits_waiting", "notice", ".git", f"What was remembered is not committed yet: {reason}.",
            "Nothing is lost; it is committed when that is over.",
        )  # fmt: skip


def _unmerged(home: OpenHome) -> Iterator[Finding]:
    if (folder := home.in_folder) is None:
        return
    for path in folder.git_index.unmerged():
        if path in folder.ours:
            yield Finding(
                "conflict_open", "warning", masked_path(path),
                "A merge or a `git stash pop` left a conflict in this file; it is recalled with its marks.",
                "Keep the lines of both, take the marks out, and `git add` it; a stash stays until you drop it.",
            )  # fmt: skip


# An edit bears other bytes than those that were written, and the same id.
_SILENT = (
    "SELECT count(*) FROM notes n WHERE n.live = 1 AND n.origin = 'agent' AND NOT EXISTS (SELECT 1 FROM notes m"
    " JOIN ledger l ON l.about = m.blob AND l.kind IN ('write', 'writes') WHERE m.id = n.id)"
)


def _cut(home: OpenHome) -> Iterator[Finding]:
    repository = home.repository
    if repository.ledger_lost is not None:
        yield Finding(
            "ledger_cut", "error", LEDGER_REF,
            "The ledger was cut, set back or deleted, and Git has the lines no more. Every session counts as external, "
            "and so does every note without a line.",
            "`memoranda pull` from a clone that has the lines brings them back; or a person goes on with what is left: "
            "`memoranda session fresh --lost`.",
        )  # fmt: skip
    elif home.in_folder is not None and (at := home.in_folder.tip.last_cut()) is not None:
        yield Finding(
            "ledger_restored", "notice", LEDGER_REF,
            f"The ledger was cut, set back or deleted; on {at[:10]} its lines were put back.",
            "Nothing is lost. If it was not you, look who writes refs in this repository.",
        )  # fmt: skip
    (count,) = home.indexes.catalog.db.execute(_SILENT).fetchone()
    if count:
        yield Finding(
            "ledger_silent", "notice", LEDGER_REF,
            f"{count} note(s) say that an agent wrote them, and the ledger has no line of that.",
            "A plain `git clone` leaves the ledger behind: `memoranda pull` brings it. Until then they are unclaimed.",
        )  # fmt: skip


def _ledger(home: OpenHome) -> Iterator[Finding]:
    repository = home.repository
    if repository.store.ref(LEDGER_REF) is None:
        return
    damaged: dict[str, int] = defaultdict(int)
    forged: dict[str, int] = defaultdict(int)
    for path, replica, data in repository.ledger_segments():
        pen = Pen(repository.keys, repository.marker.id, replica)
        for line in data.decode("utf-8", "replace").splitlines():
            if not line.startswith("{") or not line.endswith("}"):
                damaged[path] += 1
            elif replica == repository.replica.id and not pen.vouches(line):
                forged[path] += 1
    for path, count in damaged.items():
        yield Finding("ledger_damaged", "error", path, f"{count} line(s) cannot be read.", "Restore it from a clone.")
    for path, count in forged.items():
        yield Finding(
            "ledger_unvouched", "error", path, f"{count} line(s) of this clone were not written by this installation.",
            "They vouch for nothing. If the keys were lost, bring them back; else look who wrote to the ref.",
        )  # fmt: skip


def _settings(home: OpenHome) -> Iterator[Finding]:
    for owner in ("person", home.repository.marker.id, f"{home.repository.marker.id}-once"):
        settings = Settings(home.repository.keys, owner)
        if count := settings.unvouched():
            yield Finding(
                "settings_unvouched", "warning", settings.lines.place,
                f"{count} line(s) were not written by this installation. They allow and refuse nothing.",
                "Look who wrote them, and take them out; what you want settled, settle with `allow` or `policy`.",
            )  # fmt: skip


_CHECKS: tuple[Check, ...] = (
    _unreadable,
    _chains,
    _same_id,
    _sources,
    _forgotten,
    _refused,
    _held,
    _repository,
    _unmerged,
    _cut,
    _ledger,
    _settings,
    review_findings,
)
