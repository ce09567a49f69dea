"""Relation tuples in the state: the same answers as from memory, seen at once by other processes."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from memoranda.errors import InvalidInput
from memoranda.governance.relations import (
    EmbeddedRelations,
    Tuple,
    shipped_model,
    tuples_of_agent,
    tuples_of_roles,
    tuples_of_tenant,
)
from memoranda.governance.tuples import StoredTuples
from memoranda.state.database import Database
from tests.governance.test_relation_oracle import SHIPPED, _names, _random_store
from tests.governance.tuple_store import Tuples

CLEO = "agent:acme/cleo"
BOB = Tuple("user:acme/bob", "can_invoke", CLEO)


def test_the_stored_tuples_answer_as_those_in_memory_do(state: Database) -> None:
    rng, names = random.Random(9), [*_names(SHIPPED), "tenant:acme"]
    stored, memory = StoredTuples(state), Tuples()
    for _ in range(12):
        add = sorted(_random_store(rng, shipped_model(), names, 12))
        remove = sorted(rng.sample(sorted(memory.all), len(memory.all) // 2))
        stored.write(add, remove)
        memory.write(add, remove)
        for object in names:
            assert stored.read(object=object) == memory.read(object=object)
            for user in names[:4]:
                assert sorted(stored.relevant(object, user)) == sorted(memory.relevant(object, user))
                assert stored.read(user=user) == memory.read(user=user)
                assert stored.read(object=object, user=user) == memory.read(object=object, user=user)
                for relation in shipped_model()[object.split(":")[0]]:
                    ours, theirs = EmbeddedRelations(stored), EmbeddedRelations(memory)
                    assert ours.check(user, relation, object) == theirs.check(user, relation, object)


def test_what_another_process_takes_away_is_gone_at_once(state: Database, url: str) -> None:
    relations = EmbeddedRelations(StoredTuples(state))
    relations.write(tuples_of_tenant("acme") + tuples_of_agent("acme", "cleo", "ana") + (BOB,))
    assert relations.check("user:acme/bob", "can_invoke", CLEO)
    program = (
        "import sys; from memoranda.governance.relations import EmbeddedRelations, Tuple;"
        "from memoranda.governance.tuples import StoredTuples;"
        "from memoranda.state.opening import open_database;"
        f"EmbeddedRelations(StoredTuples(open_database(sys.argv[1]))).write(remove=[{BOB!r}])"
    )
    subprocess.run([sys.executable, "-c", program, url], check=True)
    assert not relations.check("user:acme/bob", "can_invoke", CLEO)
    relations.write(tuples_of_roles("acme", "bob", ["auditor"]))
    assert relations.check("user:acme/bob", "viewer", CLEO)


def test_many_members_of_a_team_are_not_read_to_find_one(state: Database) -> None:
    store = StoredTuples(state)
    store.write([Tuple(f"user:acme/u{n}", "member", "team:acme/all") for n in range(300)], [])
    store.write([Tuple("team:acme/sales#member", "member", "team:acme/all")], [])
    found = store.relevant("team:acme/all", "user:acme/u7")
    assert sorted(found) == [("member", "team:acme/sales#member"), ("member", "user:acme/u7")]


def test_a_write_that_names_two_tenants_writes_nothing(state: Database) -> None:
    store = StoredTuples(state)
    with pytest.raises(InvalidInput):
        store.write([BOB, Tuple("user:globex/bob", "viewer", "agent:globex/cleo")], [])
    assert store.read(object=CLEO) == []
    store.write([], [])
