"""A CoNLL-U file under annotation: edits, trees under what is known, undo, a journal, search, checks and retraining.

    workspace = Workspace.open("new.conllu", Parser.load("en"))
    state = workspace.edit(0, workspace.state(0).version, SetHead(2, 0, "root"))

- `Workspace` is one file; `headway.web` puts pages before it.
- `headway.annotation.edits` has the changes, `edit_of` makes one from JSON.
- `headway.annotation.journal` describes what is on disk, `headway.annotation.state` what a file says of its heads.
"""

from headway.annotation.edits import edit_of
from headway.annotation.state import State
from headway.annotation.workspace import Settings, Workspace
from headway.errors import ConflictError, EditError, JournalError, QueryError

__all__ = ["ConflictError", "EditError", "JournalError", "QueryError", "Settings", "State", "Workspace", "edit_of"]
