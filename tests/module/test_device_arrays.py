"""Arrays of devices where there is none: refusals, and the way through the host. With a CUDA module named in
ATTNSCOPE_CUDA_MODULE that runs on the emulation (docs/cuda.md), also the way from the device's memory."""

import gc
import os
import unittest
from types import SimpleNamespace
from unittest import mock

import numpy as np
import torch

import attnscope
from attnscope import arrays, native, probes
from device_capsule import KDL_CUDA, KDL_METAL, FakeDeviceArray
from reference import check_weights, logits, random_heads, softmax

Q = random_heads((4, 150, 40), 1).astype(np.float32)
K = random_heads((2, 170, 40), 2).astype(np.float32)
ON_EMULATION = "emulated" in os.environ.get("ATTNSCOPE_CUDA_MODULE", "")


class WithWay(FakeDeviceArray):
    """As torch's and CuPy's: has a method that copies it to the host."""

    copies = 0

    def to_host(self) -> np.ndarray:
        self.copies += 1
        return self.array


class TorchLike(WithWay):
    def cpu(self) -> np.ndarray:
        return self.to_host()


class CupyLike(WithWay):
    def get(self) -> np.ndarray:
        return self.to_host()


class ThroughTheHost(unittest.TestCase):
    def test_where_the_cpu_computes(self) -> None:
        plain = attnscope.weights(Q, K, backend="cpu")
        for kind in (TorchLike, CupyLike):
            for device in ((KDL_CUDA, 0), (KDL_METAL, 0)):
                q, k = kind(Q, device), kind(K, device)
                np.testing.assert_array_equal(attnscope.weights(q, k, backend="cpu"), plain)
                self.assertEqual((q.copies, k.copies, q.streams, k.streams), (1, 1, [], []))

    @unittest.skipIf(ON_EMULATION, "the emulation's module reads it")
    def test_what_has_no_way(self) -> None:
        for device in (KDL_CUDA, KDL_METAL):
            with self.assertRaisesRegex(
                attnscope.Error, f"k: lies on a device .DLPack {device}. and has no way to the host"
            ) as raised:
                attnscope.weights(Q, FakeDeviceArray(K, (device, 0)))
            self.assertEqual(raised.exception.code, "usage")

    def test_a_mask_of_a_device(self) -> None:
        mask = TorchLike(np.tri(150, dtype=bool))
        np.testing.assert_array_equal(
            attnscope.weights(Q[0], Q[1], mask=mask, backend="cpu"),
            attnscope.weights(Q[0], Q[1], mask=mask.array, backend="cpu"),
        )
        self.assertEqual((mask.copies, mask.streams), (1, []))


class Handing(unittest.TestCase):
    """How the package asks an array for its memory before the compiled part has it."""

    ENGINE = SimpleNamespace(takes_device_arrays=True)

    def test_the_default_stream_is_asked_for(self) -> None:
        q = TorchLike(Q)
        capsule = arrays._take(q, "q", [], self.ENGINE)
        self.assertEqual(type(capsule).__name__, "PyCapsule")
        self.assertEqual((q.streams, q.copies), ([1], 0))
        # Of other devices there is no such way, nor where something else computes.
        for array, engine in (
            (TorchLike(Q, (KDL_METAL, 0)), self.ENGINE),
            (TorchLike(Q), SimpleNamespace(takes_device_arrays=False)),
            (TorchLike(Q), None),
        ):
            self.assertIs(arrays._take(array, "q", [], engine), array.array)
            self.assertEqual((array.streams, array.copies), ([], 1))

    def test_torch_is_told_which_device(self) -> None:
        """It hands out tensors of its current device alone."""
        current: list[object] = []

        class Elsewhere(torch.Tensor):
            @property
            def device(self) -> str:
                return "cuda:3"

            def __dlpack_device__(self) -> tuple[int, int]:
                return (KDL_CUDA, 3)

            def __dlpack__(self, stream: object = None) -> str:
                return f"{current} {stream}"

            def detach(self) -> "Elsewhere":
                return self

        class Chosen:
            def __init__(self, device: object) -> None:
                self.device = device

            def __enter__(self) -> None:
                current.append(self.device)

            def __exit__(self, *_: object) -> None:
                current.pop()

        tensor = torch.zeros(2, 3).as_subclass(Elsewhere)
        with mock.patch.object(torch.cuda, "device", Chosen):
            self.assertEqual(arrays._take(tensor, "q", [], self.ENGINE), "['cuda:3'] 1")
        self.assertEqual(current, [])

    def test_what_its_library_refuses(self) -> None:
        class Refusing(FakeDeviceArray):
            def __dlpack__(self, stream: object = None) -> object:
                raise BufferError("sparse tensors have no strides")

        with self.assertRaisesRegex(attnscope.Error, "^v: sparse tensors have no strides$") as raised:
            arrays._take(Refusing(Q), "v", [], self.ENGINE)
        self.assertEqual(raised.exception.code, "usage")


class Probing(unittest.TestCase):
    """The tensors of a model that a probe hands on."""

    def test_q_and_k_stay_where_the_engine_computes(self) -> None:
        class ModelTensor(TorchLike):
            def detach(self) -> "ModelTensor":
                return self

        for engine, stay in ((Handing.ENGINE, True), (native.engine(backend="cpu"), False)):
            seen: dict[str, object] = {}

            def record(_: str, tensors: dict[str, object], __: object, into: dict[str, object] = seen) -> None:
                into.update(tensors)

            tensors = {name: ModelTensor(Q) for name in ("q", "k", "v", "valid")}
            job = SimpleNamespace(name="call", tensors=tensors, facts={})
            recorder = SimpleNamespace(recorded_call=record, measure=lambda *_: None)
            with mock.patch.object(probes, "_native", recorder):
                probes._Measurement(probes.Products(stats=True), engine, {}).of(job)
            for name, tensor in tensors.items():
                with self.subTest(name=name, stay=stay):
                    left = stay and name in ("q", "k")
                    self.assertEqual((tensor.streams, tensor.copies), ([1], 0) if left else ([], 1))
                    self.assertEqual(seen[name] is tensor.array, not left)


class Capsules(unittest.TestCase):
    """The errors of the compiled part for memory that it cannot read."""

    def refuse(self, device: tuple[int, int], words: str, code: str) -> None:
        q = FakeDeviceArray(Q, device)
        with self.assertRaisesRegex(attnscope.Error, words) as raised:
            native._native.array_call(q.__dlpack__(), q.__dlpack__(), None, None, {})
        self.assertEqual(raised.exception.code, code)
        del raised
        gc.collect()
        self.assertEqual(q.given_back, 2)

    @unittest.skipIf(ON_EMULATION, "the emulation's module reads it")
    def test_without_a_cuda_module(self) -> None:
        if native._native.reads_device_memory():
            self.skipTest("this machine has a CUDA device")
        self.assertFalse(native.engine().takes_device_arrays)
        self.refuse(
            (KDL_CUDA, 1), "^q: lies in the memory of CUDA device 1, which nothing here can read: ", "unavailable"
        )

    def test_of_other_devices(self) -> None:
        self.refuse((KDL_METAL, 0), r"^q: lies on a device \(DLPack 8\) whose memory", "usage")

    def test_of_types_that_are_none(self) -> None:
        q = FakeDeviceArray(np.zeros((4, 8), np.int32))
        with self.assertRaises(attnscope.Error):
            native._native.array_call(q.__dlpack__(), q.__dlpack__(), None, None, {})
        gc.collect()
        self.assertEqual(q.given_back, 2)


@unittest.skipUnless(ON_EMULATION, "no CUDA module of the emulation is named")
class FromDeviceMemory(unittest.TestCase):
    """The emulation's kernels read NumPy's memory as a device's."""

    def test_maps_are_those_of_the_host(self) -> None:
        for dtype in (np.float16, np.float32):
            q, k = Q.astype(dtype), K.astype(dtype)
            wide = np.full((150, 4, 90), np.nan, dtype)
            wide[:, :, 43:83] = q.transpose(1, 0, 2)
            plain = attnscope.weights(q, k, backend="cuda")
            check_weights(plain, softmax(logits(q.astype(float), k.astype(float)))[0], 170)
            for given in (TorchLike(q), TorchLike(wide.transpose(1, 0, 2)[:, :, 43:83])):
                other = FakeDeviceArray(k)
                np.testing.assert_array_equal(attnscope.weights(given, other, backend="cuda"), plain)
                self.assertEqual((given.streams, other.streams, given.copies), ([1], [1], 0))
                gc.collect()
                self.assertEqual((given.given_back, other.given_back), (1, 1))
            np.testing.assert_array_equal(
                attnscope.lse(TorchLike(q), k, backend="cuda"), attnscope.lse(q, k, backend="cuda")
            )
            np.testing.assert_array_equal(
                attnscope.output(TorchLike(q), TorchLike(k), TorchLike(k), backend="cuda"),
                attnscope.output(q, k, k, backend="cuda"),
            )

    def test_another_backend_reads_what_has_no_way(self) -> None:
        native.engine(backend="cuda")
        np.testing.assert_array_equal(
            attnscope.weights(FakeDeviceArray(Q), FakeDeviceArray(K), backend="cpu"),
            attnscope.weights(Q, K, backend="cpu"),
        )

    def test_a_probes_calls_are_those_of_the_host(self) -> None:
        engine = native.engine(backend="cuda")
        facts = {"format": "attnscope-capture/1", "step": "0", "layer": "0", "kind": "self", "layout": "hsd"}
        q, k = Q, random_heads((2, 150, 40), 3).astype(np.float32)
        made = []
        for given in ({"q": q, "k": k}, {"q": FakeDeviceArray(q), "k": FakeDeviceArray(k)}):
            taken = {name: arrays._take(array, name, [], engine) for name, array in given.items()}
            call = native._native.recorded_call("call", taken, facts)
            head = attnscope.Call(call, engine).head(3)
            made.append((head.weights(), head.lse(), *head.pooled(32)))
            measured = native._native.measure(call, engine, True, {}, [32], ["causal"], 0, False)
            self.assertEqual(measured.heads, 4)
        for there, here in zip(*made, strict=True):
            np.testing.assert_array_equal(here, there)

    def test_nan_and_devices_that_are_not_there(self) -> None:
        bad = K.copy()
        bad[1, 33, 5] = np.inf
        said = []
        for k in (bad, TorchLike(bad)):
            with self.assertRaises(attnscope.Error) as raised:
                attnscope.weights(TorchLike(Q), k, backend="cuda")
            said.append(str(raised.exception))
        self.assertEqual(said[0], said[1])
        self.assertIn("head 1, token 33, channel 5 is +inf", said[0])
        with self.assertRaisesRegex(attnscope.Error, "q: lies in the memory of CUDA device 9: cuda: "):
            attnscope.weights(TorchLike(Q, (KDL_CUDA, 9)), K, backend="cuda")


if __name__ == "__main__":
    unittest.main()
