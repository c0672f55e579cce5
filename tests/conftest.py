"""What every test run needs before the first import of headway."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent


def _source_digest() -> str:
    """One hash for all of headway's source text and for whether array bounds are checked."""
    digest = hashlib.sha256(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    for path in sorted((REPOSITORY / "src" / "headway").rglob("*.py")):
        digest.update(path.relative_to(REPOSITORY).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# numba's cache does not notice a change in a kernel of another file that a kernel calls, so
# compiled code is kept per state of the whole source tree: no test ever runs a stale kernel.
os.environ.setdefault("NUMBA_CACHE_DIR", str(REPOSITORY / ".cache" / f"numba-{_source_digest()}"))

from numba.core import compiler  # noqa: E402  (the cache is named before any kernel is)

import headway  # noqa: E402
import headway_papers  # noqa: E402

# Hypothesis also draws the constants of the modules that are loaded. With all of them loaded from the beginning, its
# draws depend neither on the order of the tests nor on the process they run in.
# `__main__` is a command; the others need extras.
EXTRAS = {
    "torch": "headway.torch",
    "cuda": "headway.torch.cuda",
    "triton": "headway.torch.triton",
    "fastapi": "headway.web",
    "ray": "headway.ray",
}
MISSING = [name for extra, name in EXTRAS.items() if importlib.util.find_spec(extra) is None]
LEFT_OUT = ("headway.__main__", "headway.spacy", *MISSING)
for package in (headway, headway_papers):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None):
        if not module.name.startswith(LEFT_OUT):
            importlib.import_module(module.name)


def _untraced(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Without coverage's tracer: Numba's compiler is Python, takes 40% longer under it, and runs no code of ours."""

    def compile_untraced(*arguments: Any, **options: Any) -> Any:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return compile(*arguments, **options)
        finally:
            sys.settrace(tracer)
            (lambda: None)()  # coverage's tracer goes on from the next call, which must come before this one returns

    return compile_untraced


compiler.compile_extra = _untraced(compiler.compile_extra)

settings.register_profile(
    "headway",
    deadline=None,
    derandomize=True,
    print_blob=True,
    max_examples=25,
    # a first call compiles kernels, and an exact-rational reference takes its time
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("headway")


def pytest_sessionstart() -> None:
    """Two workers would compile the same large kernels at the same time: each compiles one half first."""
    projective = {"gw0": True, "gw1": False}.get(os.environ.get("PYTEST_XDIST_WORKER", ""))
    if projective is None:
        return
    scores = np.random.default_rng(0).normal(size=(4, 4))
    headway.TreeDistribution(scores, projective=projective).covariance_with_arcs(scores)
    if projective:
        large = headway.TreeDistribution(1e9 * scores, projective=True)  # for the sums of any scale, of all trees
        large.log_prob(large.argmax())
