"""JSON without white space, on one line: how the intake log and the ledger keep what they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from json import encoder
from typing import Any


def _made() -> Callable[[Any], str]:
    """`JSONEncoder.encode` makes a function in C anew at every call, which takes as long as what it writes."""
    plain = json.JSONEncoder(separators=(",", ":"))
    make: Any = getattr(encoder, "c_make_encoder", None)  # None where Python has no `_json`
    if make is None:
        return plain.encode
    pieces = make(None, plain.default, encoder.encode_basestring_ascii, None, ":", ",", False, False, True)
    return lambda value: "".join(pieces(value, 0))


json_line = _made()
