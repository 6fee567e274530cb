"""The errors that the recorder raises."""

from __future__ import annotations


class CaptureError(RuntimeError):
    """A capture cannot record truthfully what it is asked for; the message says what to do."""


class LabelError(CaptureError):
    """Nothing tells which step or branch a forward is; what it may have mislabelled is not kept."""


class DiskError(CaptureError):
    """The disk does not take what is recorded."""
