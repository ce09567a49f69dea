"""`python -m bench [ROW …]`: runs the rows and prints one table a row. Nothing is asserted: the numbers are the result.

A row is a module of this package with `TITLE` and `run(options)`, which yields `Line`s as they are measured. A row that
has `main` instead (a measurement of another shape) is run as a program of its own, and what it prints is shown.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
from collections.abc import Sequence
from types import ModuleType

from bench._common import CACHE, ROOT, Line, Options, clean_up

ROWS = (
    "importing",
    "recall",
    "under_load",
    "serve",
    "postgres",
    "engines",
    "cognee",
    "hybrid",
    "remember",
    "sustained",
    "edit",
    "process",
    "memory",
    "million",
    "peers",
    "finding",
    "locomo",
    "french",
    "background",
    "crash",
    "secrets",
    "injection",
    "poison",
)
SELDOM = ("million", "serve", "postgres", "background")  # half an hour, and 5 GB or a model: only when they are named


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures Memoranda beside its yardsticks.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"some of {', '.join(ROWS)}; all without it")
    parser.add_argument("--scale", type=int, metavar="N", help="only with this many notes")
    parser.add_argument("--quick", action="store_true", help="few samples: to see that it runs")
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of tables")
    args = parser.parse_args(arguments)
    if unknown := set(args.rows) - set(ROWS):
        parser.error(f"no row is called {', '.join(sorted(unknown))}")
    CACHE.mkdir(exist_ok=True)
    options = Options(args.scale, args.quick)
    try:
        _all(args.rows or _usual(), options, args.json)
    finally:
        clean_up()
    return 0


def _usual() -> list[str]:
    """The rows without a name: not those that take long."""
    return [row for row in ROWS if row not in SELDOM]


def _all(rows: Sequence[str], options: Options, as_json: bool) -> None:
    for name in rows:
        if not (ROOT / "bench" / f"{name}.py").exists():
            print(f"\n{name}: not there", flush=True)
            continue
        _row(name, importlib.import_module(f"bench.{name}"), options, as_json)


def _row(name: str, module: ModuleType, options: Options, as_json: bool) -> None:
    started = time.monotonic()
    if not as_json:
        print(f"\n{getattr(module, 'TITLE', name)}", flush=True)
    if not hasattr(module, "run"):
        subprocess.run([sys.executable, "-m", f"bench.{name}"], cwd=ROOT, check=False)
        return
    if not as_json:
        print(_HEAD.format("what", "ours", "yardstick", "", "ratio", "bound", ""), flush=True)
    for line in module.run(options):
        print(line.json(name) if as_json else _shown(line), flush=True)
    if not as_json:
        print(f"  ({time.monotonic() - started:.0f} s)", flush=True)


_HEAD = "  {:<48} {:>12}  {:>12} {:<30} {:>7}  {:<18} {}"


def _shown(line: Line) -> str:
    yard = "" if line.yard is None else f"{_number(line.yard)} {line.unit}"
    ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
    met = {None: "", True: "met", False: "MISSED"}[line.met]
    text = _HEAD.format(
        line.what, f"{_number(line.ours)} {line.unit}", yard, line.yardstick, ratio, line.bound, met
    ).rstrip()
    return f"{text}\n      {line.note}" if line.note else text


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
