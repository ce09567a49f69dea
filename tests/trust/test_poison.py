"""Memory poisoning comes to nothing: the three rates of `bench/poison.py`, attack by attack."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.attacks import ATTACKS, EVIL, Attack, NaiveAgent, Scene, carried_out, keys_in, outcome
from memoranda.operations.reviewing import decide


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_comes_to_nothing(attack: Attack, tmp_path: Path) -> None:
    came_to = carried_out(attack, tmp_path)
    assert not came_to.loaded, "it loads automatically"
    assert not came_to.unlabelled, "it is recalled without its label"
    assert not came_to.displaced, "it stands in the place of the reviewed fact"


def test_the_measure_sees_a_success(tmp_path: Path) -> None:
    """A person who accepts the lie: then it loads, bears no label, and is what an asker is told."""
    with keys_in(tmp_path):
        scene = Scene(tmp_path)
        agent = NaiveAgent(scene)
        done = agent.stores(f"The limit of a wire transfer is {EVIL} euros.", supersedes=[scene.fact.id])
        agent.close()
        decide(scene.person, scene.space, [done["id"]], "accept")
        came_to = outcome(scene, EVIL, "What is the limit of a wire transfer?", external=True)
        scene.close()
    assert came_to.loaded and came_to.unlabelled and came_to.displaced
