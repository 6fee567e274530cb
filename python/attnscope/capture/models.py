"""The token layouts that are known, by the name of the transformer's class."""

from __future__ import annotations

from .encoders import ENCODER_LAYOUTS
from .history_models import HISTORY_LAYOUTS
from .image_models import IMAGE_LAYOUTS
from .language_models import LANGUAGE_LAYOUTS
from .layouts import Layout
from .packed_models import PACKED_LAYOUTS
from .picture_models import PICTURE_LAYOUTS
from .sound_models import SOUND_LAYOUTS
from .video_models import VIDEO_LAYOUTS

LAYOUTS: dict[str, Layout] = {
    **VIDEO_LAYOUTS,
    **HISTORY_LAYOUTS,
    **PACKED_LAYOUTS,
    **SOUND_LAYOUTS,
    **IMAGE_LAYOUTS,
    **PICTURE_LAYOUTS,
    **ENCODER_LAYOUTS,
    **LANGUAGE_LAYOUTS,
}
