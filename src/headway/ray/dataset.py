"""`headway.ray.parse`: trees for the texts of a Ray Dataset.

```python
import ray, headway.ray
trees = headway.ray.parse(ray.data.read_parquet("s3://bucket/news"), model="en", column="body")
trees.write_parquet("s3://bucket/trees")
```

Rows keep their columns and get two more: `sentences`, a list as in `headway.ray.outputs`, and `error`, which is null
unless the text could not be parsed. Everything else is Ray Data's: a lost node's blocks are done again; a text that
kills its worker ends the run. `headway parse-corpus` leaves such a text out, and goes on where it was stopped.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from headway.errors import ArgumentError, HeadwayError
from headway.extras import require_extra
from headway.named_models import path_of_model
from headway.ray.outputs import arrow_sentences, plain_sentence


def parse(
    dataset: Any,
    *,
    model: str = "en",
    column: str = "text",
    device: str = "cpu",
    workers: int | None = None,
    batch_size: int = 256,
    probabilities: bool = False,
) -> Any:
    """The dataset with the trees of its texts, computed when it is read. `workers` actors load the model, once each.

    `model` is a name or a path that all nodes can load. With `device` "cuda", every worker has a GPU.
    """
    require_extra("ray", "ray", "headway.ray.parse")
    import ray

    path_of_model(model)  # an unknown name is refused here, not on every node
    names = dataset.columns()
    if names is not None and column not in names:
        raise ArgumentError(f"the dataset has no column {column!r}; its columns are {', '.join(names)}")
    size = {"min_size": 1, "max_size": None} if workers is None else {"size": workers}
    return dataset.map_batches(
        TextParser,
        fn_constructor_kwargs={"model": model, "column": column, "device": device, "probabilities": probabilities},
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(**size),
        num_gpus=1 if device == "cuda" else None,
    )


class TextParser:
    """Adds the trees of a batch of texts to it; what `map_batches` of Ray, and `mapInPandas` of Spark, call."""

    def __init__(self, model: str, column: str, device: str = "cpu", probabilities: bool = False) -> None:
        from headway.pipeline import Parser

        self._parser = Parser.load(model, device=device)
        self._parser.require_text()
        self._column, self._probabilities = column, probabilities

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        texts = batch.column(self._column).to_pylist()
        found = self.trees(texts)
        sentences = pyarrow.array([trees for trees, _ in found], arrow_sentences())
        errors = pyarrow.array([error for _, error in found], pyarrow.string())
        return batch.append_column("sentences", sentences).append_column("error", errors)

    def trees(self, texts: list[str]) -> list[tuple[list[dict[str, Any]] | None, str | None]]:
        """For each text its sentences and None, or None and the reason; all are parsed together if nothing fails."""
        try:
            split = [self._parser.drafts(text) for text in texts]
            parsed = self._parser.parse_each(chain.from_iterable(split))
            plain = ([plain_sentence(one, probabilities=self._probabilities) for one in own] for own in parsed)
            return [([one for _ in own for one in next(plain)], None) for own in split]
        except Exception as error:
            if len(texts) > 1:
                return [self.trees([text])[0] for text in texts]
            reason = str(error) if isinstance(error, HeadwayError) else f"{type(error).__name__}: {error}"
            return [(None, reason)]
