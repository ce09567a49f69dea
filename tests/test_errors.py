"""What every error of ours has in common."""

from __future__ import annotations

import copy
import pickle

import pytest

from memoranda import errors


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidInput("What.", why="Why.", remedy="Next."),
        errors.OutcomeUnknown("What.", item_id="mem_1", remedy="Next."),
        errors.EngineUnavailable("What.", why="Why."),
        errors.LegalHold("What."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_reaches_another_process_as_it_is(error: errors.MemorandaError) -> None:
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(same) is type(error)
        assert (str(same), same.problem(), same.args) == (str(error), error.problem(), error.args)
