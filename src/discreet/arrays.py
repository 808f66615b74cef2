"""Array types by element type."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]
