"""What may be saved may be loaded: limits hold before and after rounding to float32."""

from __future__ import annotations

import numpy as np
import pytest

from headway.saved_values import LARGEST_WEIGHT, numbers_in_range


@pytest.mark.parametrize("weight", [LARGEST_WEIGHT, np.nextafter(LARGEST_WEIGHT, 0.0), 1e30, 1.0])
def test_weights_in_range_stay_so_in_float32(weight):
    for array in (np.array([weight, -weight]), np.array([weight, -weight], np.float32)):
        numbers_in_range(array, "weights")


@pytest.mark.parametrize("weight", [np.nextafter(LARGEST_WEIGHT, np.inf), 1e300, np.inf, np.nan])
def test_weights_out_of_range(weight):
    with pytest.raises(ValueError, match="weights has numbers out of range"):
        numbers_in_range(np.array([0.0, weight]), "weights")
