"""What an optional package is needed for, said before any work is done rather than after it."""

from __future__ import annotations

from importlib.util import find_spec

from headway.errors import MissingExtraError


def require_extra(package: str, extra: str, purpose: str, *, otherwise: str = "") -> None:
    """Raise if `package`, which the extra installs, is missing; `otherwise` names a way to do without it."""
    if find_spec(package) is None:
        remedy = f"install it with: pip install 'headway[{extra}]'"
        raise MissingExtraError(f"{purpose} needs {package}; {remedy}{otherwise and f', or {otherwise}'}")
