"""What requests may say, checked before anything is done, and what answers look like, for `/openapi.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.requests import Request

from headway.web.problems import RequestError

MOST_TREES = 20  # of the k best


_Node = Annotated[int, Field(ge=0, le=1_000_000)]  # a word, or 0, the root


class _Request(BaseModel):
    """The body of a request, read from JSON as it stands: nothing is converted, and nothing unknown is let pass."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    async def of(cls, request: Request) -> Self:
        """What the request says; an error in one sentence if that cannot be."""
        try:
            return cls.model_validate_json(await request.body())
        except ValidationError as error:
            raise RequestError(422, first_mistake(error.errors(include_url=False, include_input=False))) from None

    @classmethod
    def described(cls) -> dict[str, Any]:
        """The body, as `/openapi.json` describes it."""
        return {"requestBody": {"required": True, "content": {"application/json": {"schema": cls.model_json_schema()}}}}


def first_mistake(found: Sequence[Any]) -> str:
    """What is wrong with a request, of what Pydantic found: the field, and what it should be."""
    first = found[0]
    place = ".".join(map(str, first["loc"]))
    cause = first["msg"].removeprefix("Value error, ")
    if first["type"] == "json_invalid":
        return f"the body cannot be read ({cause}); send JSON"
    if first["type"] == "extra_forbidden":
        return f"there is no field {place!r} in such a request; /openapi.json says what there is"
    return f"{place}: {cause[:1].lower()}{cause[1:]}" if place else cause


class ParseRequest(_Request):
    """One of `text`, `tokens` and `conllu`; heads, labels and forbidden arcs are for one sentence."""

    text: str | None = Field(None, description="Raw text, which is split into sentences and words.")
    tokens: list[str] | list[list[str]] | None = Field(None, description="The words of a sentence, or of several.")
    conllu: str | None = Field(None, description="Sentences as CoNLL-U; their words and tags are kept.")
    model: str | None = Field(
        None, max_length=200, description="A model that /models lists; the first if there is none."
    )
    newlines: Literal["auto", "keep", "ignore"] = Field(
        "auto", description="When a single line end of text ends a sentence: where it seems to, always, never."
    )
    keep_heads: bool = Field(False, description="Keep the heads and labels that the CoNLL-U has; _ is unknown.")
    heads: list[_Node | None] | None = Field(
        None, description="The head of each word, first word first: 0 is the root, null is unknown. Known heads stay."
    )
    labels: list[str | None] | None = Field(
        None, description="The label of each word; null is unknown. Only words with a known head may have one."
    )
    forbid: list[tuple[_Node, _Node]] | None = Field(
        None, description="Arcs that the tree must not have: pairs of head and word, 0 being the root."
    )
    kbest: Annotated[int, Field(ge=1, le=MOST_TREES)] | None = Field(None, description="How many best trees to list.")
    alternatives: bool = Field(False, description="List the most probable heads of each word.")
    coreference: bool = Field(False, description="Find which mentions refer to the same thing, in a document.")
    format: Literal["json", "conllu", "svg"] = Field("json", description="What to answer with.")

    @model_validator(mode="after")
    def _fits_together(self) -> ParseRequest:
        given = [name for name in ("text", "tokens", "conllu") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of text, tokens and conllu, not {' and '.join(given) or 'none'}")
        if self.is_constrained and self.text is not None:
            raise ValueError("heads, labels and forbid need words that are split already; give tokens or conllu")
        if self.coreference and self.format != "json":
            raise ValueError("coreference is answered as JSON; leave format out")
        if self.keep_heads and (self.conllu is None or self.is_constrained):
            raise ValueError("keep_heads is for the heads of conllu, without others")
        return self

    @property
    def is_constrained(self) -> bool:
        """Whether something is known of the tree."""
        return not (self.heads is None and self.labels is None and self.forbid is None)


class EditRequest(_Request):
    """A change, made to the version that was seen; `edit` has an action, and what belongs to that."""

    version: int
    edit: dict[str, Any]


class VersionRequest(_Request):
    """The version that was seen."""

    version: int


class SettingsRequest(_Request):
    """What is written for words that nobody has pinned: the model's heads ("all"), or "_" ("pinned")."""

    write: Literal["all", "pinned"]


class ModelRequest(_Request):
    """The model before the latest training, or the one from it."""

    use: Literal["old", "new"]


class FileRequest(_Request):
    """The file as another program left it, or ours in its place."""

    choice: Literal["reload", "overwrite"]


class Nothing(_Request):
    """{}: there is nothing to choose."""


class Word(BaseModel):
    """A word; `head` is 0 on the root, and `offsets` are characters of the text."""

    id: int
    form: str
    lemma: str | None
    upos: str | None
    xpos: str | None
    feats: dict[str, str | bool]
    head: int
    label: str | None
    probability: float
    label_probability: float | None
    offsets: tuple[int, int] | None


class MultiwordToken(BaseModel):
    """A token of several words."""

    first: int
    last: int
    form: str
    offsets: tuple[int, int] | None


class Alternative(BaseModel):
    """A possible head of a word."""

    head: int
    probability: float


class Tree(BaseModel):
    """One of the k best trees: the head of each word, first word first."""

    heads: list[int]
    probability: float


class ParsedSentence(BaseModel):
    """A sentence and its tree; `status` says whether it is proved to be the best under the model."""

    text: str
    words: list[Word]
    multiword_tokens: list[MultiwordToken]
    probability: float
    status: str
    gap: float | None
    alternatives: list[list[Alternative]] | None = Field(None, description="Of each word, the most probable first.")
    kbest: list[Tree] | None = Field(None, description="Null where the model has no exact distribution over trees.")


class Mention(BaseModel):
    """Words of a sentence, both counted as in `sentences`: sentences from 0, words from 1."""

    sentence: int
    words: list[int]
    text: str


class ParseAnswer(BaseModel):
    """The sentences of a request, and what its mentions refer to if that was asked for."""

    model: str
    sentences: list[ParsedSentence]
    clusters: list[list[Mention]] | None = None


class ServedModel(BaseModel):
    """A model that requests can name; the rest is null until it is loaded. `text` tells whether it can split text."""

    name: str
    kind: str | None
    language: str | None
    text: bool | None
    status: Literal["loading", "ready", "failed"]
    default: bool


class ModelsAnswer(BaseModel):
    """The models, and the one for coreference if there is one."""

    models: list[ServedModel]
    coreference: str | None


class Health(BaseModel):
    """`loading` until the first model is ready; requests wait for it."""

    status: Literal["ok", "loading"]
    version: str


class Failure(BaseModel):
    """What went wrong, in one sentence."""

    model_config = ConfigDict(extra="allow")

    error: str


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for its description."""
    return {status: {"model": Failure, "description": _MEANING[status]} for status in statuses}


_MEANING = {
    400: "The query, or the page of the list, cannot be.",
    401: "The token is missing or wrong.",
    403: "Host or Origin is of another site.",
    404: "There is nothing at this address.",
    409: "Somebody else changed the sentence; `current` is what it is now.",
    413: "The request is too large.",
    415: "The body is not JSON.",
    422: "The request cannot be met as it stands.",
    503: "Too much at once, or too slow; Retry-After says when to ask again.",
}
