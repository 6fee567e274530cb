"""The one error that the recorder raises."""

from __future__ import annotations


class CaptureError(RuntimeError):
    """What is asked for cannot be recorded truthfully; the message says what to do."""
