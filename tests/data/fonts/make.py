"""Writes boxes.ttc beside itself: three faces whose only letters are boxes, made up for the tests.

Run it with a Python that has fonttools. In face i (from 0), U+732B (a cat) and U+20000 are boxes of
800 × 300·(i + 1) units on the base line; the em and each letter's advance are 1000 units.
"""

import pathlib

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTCollection


def box(height):
    pen = TTGlyphPen(None)
    pen.moveTo((100, 0))
    for point in [(100, height), (900, height), (900, 0)]:
        pen.lineTo(point)
    pen.closePath()
    return pen.glyph()


def face(number):
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "box"])
    builder.setupCharacterMap({0x732B: "box", 0x20000: "box"})
    builder.setupGlyf({".notdef": box(100), "box": box(300 * (number + 1))})
    builder.setupHorizontalMetrics({".notdef": (1000, 100), "box": (1000, 100)})
    builder.setupHorizontalHeader(ascent=900, descent=-300)
    builder.setupNameTable({"familyName": f"Boxes {number}", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost(keepGlyphNames=False)
    builder.font["head"].created = builder.font["head"].modified = 0
    builder.font.recalcTimestamp = False
    return builder.font


collection = TTCollection()
collection.fonts = [face(number) for number in range(3)]
collection.save(pathlib.Path(__file__).parent / "boxes.ttc")
