"""Every error that Memoranda raises on purpose, in one tree.

MemorandaError
├── InvalidInput            exit 2   400  memory_invalid
│   ├── InvalidTime                       memory_invalid_time
│   ├── InvalidNote                       memory_invalid_note
│   ├── InvalidPointer                    memory_invalid_pointer
│   ├── InvalidPath                       memory_invalid_path
│   ├── MethodUnknown                405  memory_method_unknown
│   ├── TooLarge                     413  memory_too_large
│   ├── MediaTypeUnknown             415  memory_media_type_unknown
│   └── ConfigRefused                     memory_config_refused
├── Refused                 exit 3   403  memory_refused
│   ├── ReadOnlyHome                      memory_home_read_only
│   ├── SecretRefused                422  memory_secret_refused
│   ├── PersonalDataRefused          422  memory_personal_data_refused
│   ├── ClassificationRefused        422  memory_classification_refused
│   ├── RuleOfTwo                         memory_rule_of_two
│   ├── ReviewUnsigned                    memory_review_unsigned
│   ├── CapabilityUnsupported        422  memory_capability_unsupported
│   ├── Unauthenticated              401  memory_unauthenticated
│   ├── Forbidden                         memory_forbidden
│   ├── Frozen                       423  memory_frozen
│   ├── LegalHold                    409  memory_legal_hold
│   ├── Forgotten                    409  memory_forgotten
│   └── ConfirmationRequired         409  memory_confirmation_required
├── NotFound                exit 4   404  memory_not_found
│   ├── Erased                       410  memory_erased
│   ├── HomeNotFound                      memory_home_not_found
│   └── UnknownNote                       memory_unknown_note
├── Conflict                exit 5   409  memory_conflict
│   ├── ChainConflict                     memory_chain_conflict
│   ├── IsolationUnsatisfied              memory_isolation_unsatisfied
│   ├── PreconditionFailed           412  memory_precondition_failed
│   ├── HomeBusy                          memory_home_busy
│   └── RefMoved                          memory_ref_moved
├── CheckFailed             exit 1   409  memory_check_failed
└── Unavailable             exit 6   503  memory_unavailable
    ├── EngineUnavailable            502  memory_engine_unavailable
    │   └── OutcomeUnknown                memory_engine_unavailable
    ├── ComponentUnavailable              memory_component_unavailable
    ├── HomeDamaged                       memory_home_damaged
    ├── HomeFormatUnknown                 memory_home_format_unknown
    ├── GitFailed                         memory_git_failed
    ├── IndexBusy                         memory_index_busy
    └── IndexDamaged                      memory_index_damaged

Each error says what happened (`what`), why (`why`) and what to do next (`remedy`). `code` is stable: programs may
compare it. `exit_code` is the exit code of the command line, `status` the status of a problem document (RFC 9457).
"""

from __future__ import annotations

from math import ceil
from typing import ClassVar, Protocol


class MemorandaError(Exception):
    """The root: an error that explains itself.

    Args:
        what: what happened, one sentence.
        why: the reason, one sentence; may be empty when `what` already says it.
        remedy: what the reader can do next, one sentence.
    """

    code: ClassVar[str] = "memory_error"
    exit_code: ClassVar[int] = 6
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Something went wrong"

    def __init__(self, what: str, *, why: str = "", remedy: str = "") -> None:
        super().__init__(what, why, remedy)
        self.what = what
        self.why = why
        self.remedy = remedy

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.why, self.remedy) if part)

    def __reduce__(self) -> tuple[object, ...]:
        """To another process as it is, whatever its class asks for when it is raised."""
        return type(self).__new__, (type(self), *self.args), self.__dict__

    def problem(self) -> dict[str, object]:
        """The RFC 9457 problem document: `type`, `title`, `status`, `code`, `detail`, `why`, `remedy`."""
        return {
            "type": f"urn:memoranda:{self.code}",
            "title": self.title,
            "status": self.status,
            "code": self.code,
            "detail": self.what,
            "why": self.why or None,
            "remedy": self.remedy or None,
        }


class InvalidInput(MemorandaError):
    """The caller's words cannot be taken as they are; nothing was written."""

    code = "memory_invalid"
    exit_code = 2
    status = 400
    title = "The request cannot be taken as it is"


class InvalidTime(InvalidInput):
    """A date or a time that does not exist, or an interval that ends before it begins."""

    code = "memory_invalid_time"
    title = "Not a possible time"


class InvalidNote(InvalidInput):
    """A note that may not be written: an empty text, an unknown kind, a NUL, too large."""

    code = "memory_invalid_note"
    title = "Not a possible note"


class InvalidPointer(InvalidInput):
    """A `nas://` pointer that does not have the form `nas://<home>/<path>@<rev>#L<a>-L<b>`."""

    code = "memory_invalid_pointer"
    title = "Not a possible pointer"


class InvalidPath(InvalidInput):
    """A path that climbs out of the Home or is not a place for a note."""

    code = "memory_invalid_path"
    title = "Not a possible path"


class MethodUnknown(InvalidInput):
    """This address takes other methods."""

    code = "memory_method_unknown"
    status = 405
    title = "Not by this method"


class TooLarge(InvalidInput):
    """A request's body that is larger than it may be; it was not read to its end."""

    code = "memory_too_large"
    status = 413
    title = "Too large"


class MediaTypeUnknown(InvalidInput):
    """A request's body that does not say that it is JSON."""

    code = "memory_media_type_unknown"
    status = 415
    title = "Not JSON"


class ConfigRefused(InvalidInput):
    """A setting of the service that is missing, wrong, or not safe enough for its environment; it does not start."""

    code = "memory_config_refused"
    title = "The configuration is refused"


class Refused(MemorandaError):
    """Understood, and not allowed."""

    code = "memory_refused"
    exit_code = 3
    status = 403
    title = "Refused"


class ReadOnlyHome(Refused):
    """This Home can be read and not written at the moment."""

    code = "memory_home_read_only"
    title = "The Home is read-only"


class SecretRefused(Refused):
    """A password, a token, a key, a card or an account number in what was to be kept; nothing was written.

    Its words name the kind and the position, never the value.
    """

    code = "memory_secret_refused"
    status = 422
    title = "A secret is not kept"


class PersonalDataRefused(Refused):
    """Personal data where the policy says `allow_personal_data: false`; nothing was written, no value is named."""

    code = "memory_personal_data_refused"
    status = 422
    title = "Personal data is not kept here"


class ClassificationRefused(Refused):
    """Classified higher than the policy lets this agent write."""

    code = "memory_classification_refused"
    status = 422
    title = "Classified too high"


class CapabilityUnsupported(Refused):
    """The engine of the agent's policy does not announce this operation."""

    code = "memory_capability_unsupported"
    status = 422
    title = "The engine cannot do this"


class Unauthenticated(Refused):
    """Nobody is known by the credential that came with the request, or none came."""

    code = "memory_unauthenticated"
    status = 401
    title = "Not authenticated"


class Forbidden(Refused):
    """The caller is known, and may not do this."""

    code = "memory_forbidden"
    title = "Not allowed"


class Frozen(Refused):
    """A security officer has stopped all writes of this agent or tenant."""

    code = "memory_frozen"
    status = 423
    title = "Writing is stopped"


class RuleOfTwo(Refused):
    """A session that has met untrusted content and private data would change state beyond itself without a person.

    `asked` is the mark by which a person can allow this one operation, empty where that cannot be.
    """

    code = "memory_rule_of_two"
    title = "This needs a person"
    asked = ""  # the mark by which a person can allow it once


class ReviewUnsigned(Refused):
    """Signed reviews are asked for here, and this one could not be signed by an allowed signer; nothing was written."""

    code = "memory_review_unsigned"
    title = "A review is signed here"


class Told(Protocol):
    """What was done before an error, as data."""

    def json(self) -> dict[str, object]: ...


class LegalHold(Refused):
    """What is under legal hold is neither forgotten, nor erased, nor let expire.

    `done` is what went all the same, None when nothing did: its members stand in the problem document too.
    """

    code = "memory_legal_hold"
    status = 409
    title = "Under legal hold"

    def __init__(self, what: str, *, why: str = "", remedy: str = "", done: Told | None = None) -> None:
        super().__init__(what, why=why, remedy=remedy)
        self.done = done

    def problem(self) -> dict[str, object]:
        """The problem document, with what was done as further members."""
        return {**super().problem(), **(self.done.json() if self.done is not None else {})}


class Forgotten(Refused):
    """The same content was forgotten, and only a person's explicit remember brings it back."""

    code = "memory_forgotten"
    status = 409
    title = "It was forgotten"


class ConfirmationRequired(Refused):
    """This takes away more than one thing at once and was not confirmed; nothing was removed."""

    code = "memory_confirmation_required"
    status = 409
    title = "Confirm it first"


class NotFound(MemorandaError):
    """What was asked for is not there."""

    code = "memory_not_found"
    exit_code = 4
    status = 404
    title = "Not found"


class Erased(NotFound):
    """What the pointer names was erased, with its history; `day` (YYYY-MM-DD) says when."""

    code = "memory_erased"
    status = 410
    title = "Erased"

    def __init__(self, day: str) -> None:
        super().__init__(
            f"Erased on {day}.", why="The words that stood there were taken out of this Home with their history."
        )
        self.day = day


class HomeNotFound(NotFound):
    """No Home at or above the place that was asked."""

    code = "memory_home_not_found"
    title = "No Home here"


class UnknownNote(NotFound):
    """No note has this id."""

    code = "memory_unknown_note"
    title = "No such note"


class Conflict(MemorandaError):
    """Somebody else was there first, or the change contradicts what stands."""

    code = "memory_conflict"
    exit_code = 5
    status = 409
    title = "Conflict"


class ChainConflict(Conflict):
    """A cycle, or a second head on one chain."""

    code = "memory_chain_conflict"
    title = "The chain does not allow it"


class IsolationUnsatisfied(Conflict):
    """The chosen instance separates tenants less than the agent's policy asks for."""

    code = "memory_isolation_unsatisfied"
    title = "The instance does not separate enough"


class PreconditionFailed(Conflict):
    """What was to be changed is no longer what the caller saw."""

    code = "memory_precondition_failed"
    status = 412
    title = "It has changed meanwhile"


class HomeBusy(Conflict):
    """A person's merge, rebase, detached HEAD or lock is in the way of what changes the whole repository."""

    code = "memory_home_busy"
    title = "The Home is busy"


class RefMoved(Conflict):
    """A ref is no longer where the writer had seen it; the writer may look again and retry."""

    code = "memory_ref_moved"
    title = "A ref has moved"


class CheckFailed(MemorandaError):
    """A check ran to its end and its answer is no (golden tests below their threshold, doctor's findings)."""

    code = "memory_check_failed"
    exit_code = 1
    status = 409
    title = "A check failed"


class Unavailable(MemorandaError):
    """Something needed is missing, damaged or does not answer.

    `asked` is False where it certainly was not asked, or has said that it did nothing; `finished` where it has
    answered, so that nothing more will come of it; `retry_after`: in how many seconds it will be asked again.
    """

    code = "memory_unavailable"
    exit_code = 6
    status = 503
    title = "Unavailable"
    asked = True
    finished = False
    retry_after: float | None = None

    def problem(self) -> dict[str, object]:
        """The problem document, with `retry_after` in whole seconds where that is known."""
        told = super().problem()
        return told if self.retry_after is None else {**told, "retry_after": ceil(self.retry_after)}


class EngineUnavailable(Unavailable):
    """An engine does not answer, or answers something that cannot be used."""

    code = "memory_engine_unavailable"
    status = 502
    title = "The engine does not answer"


class OutcomeUnknown(EngineUnavailable):
    """An engine did not say whether it has kept the item `item_id`, and could not be asked. Reading it settles that."""

    def __init__(self, what: str, *, item_id: str, why: str = "", remedy: str = "") -> None:
        super().__init__(what, why=why, remedy=remedy)
        self.item_id = item_id

    def problem(self) -> dict[str, object]:
        """The problem document, with the id of the item."""
        return {**super().problem(), "item_id": self.item_id}


class ComponentUnavailable(Unavailable):
    """What decides, resolves credentials or filters does not answer; so the answer is no."""

    code = "memory_component_unavailable"
    title = "A component that has to agree does not answer"


class HomeDamaged(Unavailable):
    """The repository or the intake log cannot be read."""

    code = "memory_home_damaged"
    title = "The Home is damaged"


class HomeFormatUnknown(Unavailable):
    """The marker names a format that this version does not know."""

    code = "memory_home_format_unknown"
    title = "Unknown format"


class GitFailed(Unavailable):
    """Git refused or could not be run."""

    code = "memory_git_failed"
    title = "Git failed"


class IndexBusy(Unavailable):
    """Another process has held an index for longer than is waited for it; nothing is wrong with it."""

    code = "memory_index_busy"
    title = "An index is busy"


class IndexDamaged(Unavailable):
    """An index cannot be read; it can be deleted and made again."""

    code = "memory_index_damaged"
    title = "An index is damaged"
