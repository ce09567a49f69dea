"""Requests that come while another thread imports numpy, as when a service has just started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_STORY = """
import sys, threading
begun, go_on = threading.Event(), threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy._core":  # numpy stands in sys.modules by then, and is empty
            begun.set()
            assert go_on.wait(30)

from pathlib import Path
from memoranda.index import _facets
from memoranda.index._at_hand import numpy_at_hand
from memoranda.index.embedding.static import StaticEmbedder, installed

bits = int.from_bytes(bytes(range(1, 9)), "little")
def asked():
    found = [_facets._spread(bits, 64)]
    if (folder := installed()) is not None:
        embedder = StaticEmbedder(folder, Path(sys.argv[1]))
        found.append(embedder.embed_question("the river mill", lambda word: 1.0))
    return found

before = asked()
assert "numpy" not in sys.modules
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=__import__, args=("numpy",))
thread.start()
assert begun.wait(30)
assert "numpy" in sys.modules and not hasattr(sys.modules["numpy"], "zeros")
assert numpy_at_hand() is None and asked() == before
go_on.set()
thread.join()
assert numpy_at_hand() is sys.modules["numpy"] and asked() == before
"""


def test_half_of_numpy_is_not_used(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _STORY, str(tmp_path)], check=True, timeout=60)
