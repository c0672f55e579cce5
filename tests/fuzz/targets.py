"""The targets by name: module of this folder, and the function in it that prepares their draws."""

TARGETS = {
    "treebanks": "read_treebanks:treebanks",
}
