"""These tests share the statistical tests' goodness of fit and the noise tests' streams."""

import sys
from pathlib import Path

for folder in ("stat", "noise"):
    if (path := str(Path(__file__).parents[1] / folder)) not in sys.path:
        sys.path.append(path)
