"""PNG files, and how alike two pictures are, by the measures of tests/support/picture_compare.h."""

import struct
import zlib


def read_png(data):
    """Width, height and rows of 8-bit RGB as bytes, of a PNG without interlacing."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, packed, width, height, channels = 8, b"", 0, 0, 0
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colours in (2, 6) and not interlaced, "another kind of PNG"
            channels = 3 if colours == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    raw, stride = zlib.decompress(packed), width * channels
    rows, before = [], bytearray(stride)
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        undo(kind, row, before, channels)
        before = row
        if channels == 4:
            kept = bytearray(width * 3)
            for c in range(3):
                kept[c::3] = row[c::4]
            row = kept
        rows.append(bytes(row))
    return width, height, rows


def undo(kind, row, up, step):
    """Takes a row's filter back."""
    if kind == 2:
        for i, above in enumerate(up):
            row[i] = (row[i] + above) & 255
    elif kind == 1:
        for i in range(step, len(row)):
            row[i] = (row[i] + row[i - step]) & 255
    elif kind == 3:
        for i, above in enumerate(up):
            row[i] = (row[i] + ((row[i - step] if i >= step else 0) + above) // 2) & 255
    elif kind == 4:
        for i, above in enumerate(up):
            left, corner = (row[i - step], up[i - step]) if i >= step else (0, 0)
            by_left, by_above, by_corner = abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)
            if by_left <= by_above and by_left <= by_corner:
                guess = left
            else:
                guess = above if by_above <= by_corner else corner
            row[i] = (row[i] + guess) & 255


def likeness(one, other, box):
    """The mean structural similarity of 8x8 blocks of luma and the share of pixels with a channel that differs by
    more than 32, within (x0, y0, x1, y1)."""
    x0, y0, x1, y1 = box
    bad, similarity, blocks = 0, 0.0, 0
    for y in range(y0, y1 - 7, 8):
        lines = [(a[2][row], b[2][row]) for a, b in [(one, other)] for row in range(y, y + 8)]
        for x in range(x0, x1 - 7, 8):
            blocks += 1
            pieces = [(p[3 * x:3 * x + 24], q[3 * x:3 * x + 24]) for p, q in lines]
            if all(p == q for p, q in pieces):
                similarity += 1
                continue
            bad += sum(max(abs(p[i] - q[i]), abs(p[i + 1] - q[i + 1]), abs(p[i + 2] - q[i + 2])) > 32
                       for p, q in pieces for i in range(0, 24, 3))
            similarity += block_similarity(pieces)
    return similarity / blocks, bad / (64 * blocks)


def block_similarity(pieces):
    luma = [[.2126 * s[i] + .7152 * s[i + 1] + .0722 * s[i + 2] for piece in pieces for s in (piece[side],)
             for i in range(0, 24, 3)] for side in (0, 1)]
    mean = [sum(values) / 64 for values in luma]
    spread = [sum(v * v for v in values) / 64 - m * m for values, m in zip(luma, mean)]
    both = sum(p * q for p, q in zip(*luma)) / 64 - mean[0] * mean[1]
    return ((2 * mean[0] * mean[1] + 6.5025) * (2 * both + 58.5225) /
            ((mean[0] ** 2 + mean[1] ** 2 + 6.5025) * (spread[0] + spread[1] + 58.5225)))
