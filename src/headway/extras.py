"""What a package is needed for that cannot be imported: of an optional one, before any work is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

from headway.errors import MissingExtraError


def require_extra(package: str, extra: str, purpose: str, *, otherwise: str = "") -> None:
    """Raise if `package`, which the extra installs, is missing; `otherwise` names a way to do without it."""
    if find_spec(package) is None:
        remedy = f"install it with: pip install 'headway[{extra}]'"
        raise MissingExtraError(f"{purpose} needs {package}; {remedy}{otherwise and f', or {otherwise}'}")


def require_working_extra(package: str, extra: str, purpose: str) -> None:
    """Raise if `package`, which networks need from the extra, is missing or cannot be imported."""
    require_extra(package, extra, purpose)
    with required(package):
        import_module(package)


@contextmanager
def required(package: str) -> Iterator[None]:
    """Raise if `package`, which is installed, cannot be imported: the system may lack what it needs."""
    try:
        yield
    except (ImportError, OSError) as error:  # torch raises OSError where a shared library is missing
        raise MissingExtraError(
            f"networks need {package}, which cannot be imported ({error}); install it again with: "
            f"pip install --force-reinstall {package}"
        ) from None
