"""The injection filter: how many attacks it labels, and how much honest text.

The prompts (`../shared/data/injection`) in halves by their hash: the rules were written with the first in view, the
second is for the report. The filter labels and drops; it is no boundary, and the numbers say why. Most of these attacks
are questions or orders that could stand in any honest text ("use numbers for vowels in your answer").
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator

from bench._common import Line, Options, percentile, texts
from bench.secrets import FOLDER, digest, honest
from memoranda.trust.injection import judge

TITLE = "Injection filter: attacks and honest texts that get a label"


def run(options: Options) -> Iterator[Line]:
    if not (FOLDER / "injection").exists():
        return
    rows = [json.loads(line) for line in (FOLDER / "injection" / "prompts.jsonl").read_bytes().splitlines()]
    for half, name in ((0, "first half (work)"), (1, "second half (report)")):
        mine = [row for row in rows if int(digest(row["text"])[:2], 16) % 2 == half]
        for label, word in ((1, "attacks labelled"), (0, "honest ones labelled")):
            levels = Counter(judge(row["text"]).level for row in mine if row["label"] == label)
            total = levels.total()
            share = 100 * (total - levels["clean"]) / total
            yield Line(f"{name}: {word}", share, "%", note=f"of {total}, {levels['blocked']} blocked")
    attacks = [row for row in rows if row["label"] == 1]
    for source in sorted({row["src"] for row in attacks}):
        of = [judge(row["text"]).level != "clean" for row in attacks if row["src"] == source]
        yield Line(f"by source: {source}", 100 * sum(of) / len(of), "%", note=f"of {len(of)}")
    for name, texts_ in honest():
        verdicts = [judge(text).level for text in texts_]
        wrong = len(verdicts) - verdicts.count("clean")
        yield Line(f"labelled: {name}", 100 * wrong / len(verdicts), "%", note=f"{wrong} of {len(verdicts):,}")
    source = " ".join(texts(options.samples(2000)))
    took = []
    for at in range(0, len(source) - 1024, 1024):
        started = time.process_time_ns()
        judge(source[at : at + 1024])
        took.append((time.process_time_ns() - started) / 1e6)
    yield Line("a kilobyte of conversation, p50", percentile(took, 50), "ms")
    yield Line("a kilobyte of conversation, p95", percentile(took, 95), "ms")
