"""What a session meets, and may do, with memories that lie in an engine elsewhere: as with those of its own Homes.

Sessions live in the Home of the project, whichever engine an agent's memories are in: what a session has met there goes
on with it here, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoranda.context import Context
from memoranda.engines.contract import OperationContext
from memoranda.engines.homes import Homes
from memoranda.engines.placing import circumstances
from memoranda.operations.once import permitted
from memoranda.operations.sessions import Met
from memoranda.operations.stamping import taint_of_sources
from memoranda.trust.labels import CLEAN, Root, Taint, is_private
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Shown:
    """Of one item whose words are about to be given out: its id, its classification, and whether it is quarantined."""

    id: str
    classification: str
    quarantined: bool


class Company:
    """The sessions of one service."""

    def __init__(self, homes: Homes) -> None:
        self.homes = homes

    def met(self, context: Context, where: OperationContext) -> Met | None:
        """What the session of this call has met by now; None where it has met nothing and no Home was made yet."""
        own = circumstances(context, where)
        with self.homes.reading(own, where.tenant, where.project, ()) as space:
            homes = space.homes()
            return space.met(own, homes[0]) if homes else None

    def hides(self, context: Context, where: OperationContext) -> bool:
        """Whether words from outside are kept from this caller: a session that has met none. A person sees all."""
        return not context.person and self.withholds(context, where)

    def withholds(self, context: Context, where: OperationContext) -> bool:
        """Whether a recall only points to words from outside: to a session that has met none, whoever asks."""
        met = self.met(context, where)
        return met is None or not met.taint

    def meet(self, context: Context, where: OperationContext, shown: Iterable[Shown]) -> None:
        """The session is about to be given these words: what that does to it is durable when this returns."""
        items = list(shown)
        roots = [Root("note", item.id, "kept in an engine, and not reviewed") for item in items if item.quarantined]
        private = any(is_private(item.classification) for item in items)
        if context.person or not (roots or private):
            return
        own = circumstances(context, where)
        with self.homes.reading(own, where.tenant, where.project, (), write="project") as space:
            sessions = space.one().sessions
            if roots:
                sessions.raise_taint(own, sorted(roots))
            if private:
                sessions.raise_private(own)

    def permit(self, context: Context, where: OperationContext, operation: str, scope: str | None) -> None:
        """RuleOfTwo when the session has met too much to do this."""
        own = circumstances(context, where)
        with self.homes.reading(own, where.tenant, where.project, ()) as space:
            for home in space.homes()[:1]:
                permitted(own, home, space.met(own, home), operation, scope, {})

    def stamp(self, context: Context, where: OperationContext, sources: Sequence[str]) -> Taint:
        """What is written now with these sources is stamped with: its session's taint, and what its sources bring."""
        own = circumstances(context, where)
        with self.homes.reading(own, where.tenant, where.project, ()) as space:
            homes = space.homes()
            taint = space.met(own, homes[0]).taint if homes else CLEAN
            return taint | taint_of_sources(homes, sources) if sources else taint
