"""Arrays that say that they lie on a device: DLPack capsules of NumPy's memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

KDL_CUDA, KDL_METAL = 2, 8
_CODES = {"f": 2, "u": 1, "i": 0, "b": 6}


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class FakeDeviceArray:
    """Speaks DLPack for a device's memory, which is that of a NumPy array. Must outlive its capsules.

    streams: those that __dlpack__() was asked for; given_back: capsules that nobody uses any more.
    """

    def __init__(self, array: np.ndarray, device: tuple[int, int] = (KDL_CUDA, 0)) -> None:
        self.array, self.device, self.ndim = array, device, array.ndim
        self.streams: list[Any] = []
        self.given_back = 0
        self._kept: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, stream: Any = None) -> Any:
        self.streams.append(stream)
        array = self.array
        axes = ctypes.c_int64 * array.ndim
        shape, strides = axes(*array.shape), axes(*(s // array.itemsize for s in array.strides))
        managed = _Managed()
        managed.tensor.data = array.ctypes.data
        managed.tensor.device = _Device(*self.device)
        managed.tensor.ndim = array.ndim
        managed.tensor.dtype = _Type(_CODES[array.dtype.kind], array.itemsize * 8, 1)
        managed.tensor.shape, managed.tensor.strides = shape, strides

        def give_back(_: object) -> None:
            self.given_back += 1

        managed.deleter = _Deleter(give_back)
        self._kept.append((managed, shape, strides))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(managed), b"dltensor", None)
