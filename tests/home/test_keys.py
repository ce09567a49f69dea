"""The keys beside a Home, and the MACs under them."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.home.keys import Keys


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
def test_a_mac_is_hmac_sha256_as_everybody_works_it_out(tmp_path: Path, texts: list[bytes]) -> None:
    keys = Keys(tmp_path)
    for text in texts:  # one after the other: none leaves anything behind in the next
        expected = hmac.new(keys.get("ledger", "home_a"), text, hashlib.sha256).hexdigest()
        assert keys.mac("ledger", "home_a", text) == expected[:32]
