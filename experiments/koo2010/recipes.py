"""Recipes for the grand-sibling parser of koo2010's table 1, compared on held-out sentences.

    python experiments/koo2010/recipes.py --data ../shared/data/conllx --language swedish --recipe base --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from headway import __version__
from headway.features import blocks
from headway.learning.progress import Pass
