"""A figure of matplotlib that displays itself in a notebook, whether or not pyplot was imported."""

from __future__ import annotations

import io

from matplotlib import figure


class Figure(figure.Figure):
    """A matplotlib Figure with a picture for notebooks.

    pyplot would register it, and change the process: choose a backend, keep every figure alive.
    """

    def _repr_png_(self) -> bytes:
        """The picture, for notebooks."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()
