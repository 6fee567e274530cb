"""Codes of one byte as PyTorch, safetensors and NumPy write them: maps are those of torch in float64."""

import json
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy as np
import torch
from safetensors.torch import load_file, save_file

from support import has_program, program

SHAPE = (2, 2, 200, 16)
TYPES = {
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "e4m3fnuz": torch.float8_e4m3fnuz,
    "e5m2fnuz": torch.float8_e5m2fnuz,
}


def setUpModule() -> None:
    if not has_program():
        raise unittest.SkipTest("ATTNSCOPE names no program")


class Codes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        torch.manual_seed(3)
        self.q, self.k = torch.randn(SHAPE), torch.randn(SHAPE)

    def quantised(self, values: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """The values divided by their scales, a scale each 64 tokens, as codes."""
        rows = scale.repeat_interleave(64, 2)[:, :, : values.shape[2], None]
        if dtype == torch.int8:
            return (values / rows).round().clamp(-127, 127).to(dtype)
        return (values / rows).to(dtype)

    def call(self, dtype: torch.dtype) -> dict[str, torch.Tensor]:
        step = 1 / 32 if dtype == torch.int8 else 1.0
        scale = step * (1 + torch.rand(2, 2, 4))
        return {
            "q": self.quantised(self.q, scale, dtype),
            "k": self.quantised(self.k, scale.flip(2), dtype),
            "q_scale": scale,
            "k_scale": scale.flip(2),
        }

    def check(self, call: dict[str, torch.Tensor], *arguments: object) -> None:
        """The exported map of a head is torch's own of code times scale."""
        path = self.folder / "map.h5"
        program("export", *arguments, "--heads", "1", "--dtype", "f32", "--force", "-o", path)
        rows = {name: call[f"{name}_scale"].double().repeat_interleave(64, 2)[:, :, :200, None] for name in "qk"}
        q, k = (call[name].to(torch.float32).double() * rows[name] for name in "qk")
        expected = (q @ k.transpose(2, 3) / 4).softmax(-1)[:, 1]
        with h5py.File(path) as file:
            found: list[np.ndarray] = []
            file.visititems(lambda _, item: found.append(item[()]) if item.name.endswith("/weights") else None)
        maps = max(found, key=lambda item: item.size)
        self.assertEqual(maps.shape, (2, 1, 200, 200))
        np.testing.assert_allclose(maps[:, 0], expected.numpy(), rtol=1e-5, atol=1e-9)

    def test_types(self) -> None:
        for name, dtype in TYPES.items() | {("i8", torch.int8)}:
            with self.subTest(name):
                call = self.call(dtype)
                torch.save(call, self.folder / "call.pt")
                save_file({key: value.contiguous() for key, value in call.items()}, self.folder / "call.safetensors")
                for file in ("call.pt", "call.safetensors"):
                    self.check(call, self.folder / file)
                    info = json.loads(program("info", self.folder / file, "--json").stdout)
                    self.assertEqual(info["calls"][0]["dtype"], name)
                    self.assertEqual(info["calls"][0]["codes"][1], f"k: {name} with a scale each 64 tokens of a head")

    def test_bytes_whose_type_is_told(self) -> None:
        """NumPy has no names for them: plain bytes and voids."""
        call = self.call(torch.float8_e4m3fn)
        for name in "qk":
            codes = call[name].view(torch.uint8).numpy()
            np.save(self.folder / f"{name}.npy", codes.view("V1") if name == "q" else codes)
        np.savez(self.folder / "scales.npz", a=call["q_scale"].numpy(), b=call["k_scale"].numpy())
        told = ["--q", self.folder / "q.npy", "--k", self.folder / "k.npy", "--q-dtype", "e4m3", "--k-dtype", "e4m3"]
        scales = ["--q-scale", f"{self.folder}/scales.npz:a", "--k-scale", f"{self.folder}/scales.npz:b"]
        self.check(call, *told, *scales)
        self.assertIn("--q-dtype TYPE", program("info", *told[:4], code=2).stderr)
        # bfloat16 of ml_dtypes is a void of two bytes.
        words = self.q.bfloat16().view(torch.int16).numpy().view("V2")
        np.save(self.folder / "q.npy", words)
        np.save(self.folder / "k.npy", words)
        info = json.loads(program("info", *told[:4], "--json").stdout)
        self.assertEqual(info["calls"][0]["dtype"], "bf16")

    def test_opaque_bytes_of_hdf5(self) -> None:
        call = self.call(torch.int8)
        for told in ([], ["--q-dtype", "i8", "--k-dtype", "i8"]):
            with h5py.File(self.folder / "call.h5", "w") as file:
                for key, value in call.items():
                    opaque = told and value.dtype == torch.int8
                    file[key] = value.numpy().view("V1") if opaque else value.numpy()
            self.check(call, self.folder / "call.h5", *told)

    def test_a_copy_has_the_same_maps(self) -> None:
        call = self.call(torch.float8_e5m2)
        save_file(call, self.folder / "call.safetensors")
        program("convert", self.folder / "call.safetensors", "-o", self.folder / "copy")
        self.check(call, self.folder / "copy")

    def values_of(self, *arguments: object) -> dict[str, torch.Tensor]:
        """q and k as the program widens them, which a copy holds as numbers."""
        program("convert", *arguments, "-o", self.folder / "copy", "--force")
        (file,) = (self.folder / "copy").glob("*.safetensors")
        return load_file(file)

    def test_blocks_of_channels(self) -> None:
        """All codes of 4 bits with all scales, and all 8-bit codes with all exponents, are torch's products."""
        # A token each scale, whose 256 channels have each code 16 times.
        codes = torch.arange(256).repeat(256, 1) % 16
        pairs = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8).view(1, 1, 256, 128)
        numbers = torch.arange(256, dtype=torch.uint8)
        exponents = (numbers.int() % 150 + 50).to(torch.uint8).view(torch.float8_e8m0fnu)  # of finite logits
        scales = (numbers.int() % 127).to(torch.uint8).view(torch.float8_e4m3fn)
        value = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])[codes]
        octets = (torch.arange(256).repeat(256, 1) % 126).to(torch.uint8).view(torch.float8_e4m3fn)
        for name, tensor, blocks, expected, factor in (
            ("nvfp4", pairs.view(torch.float4_e2m1fn_x2), scales, value, 0.375),
            ("mxfp4", pairs.view(torch.float4_e2m1fn_x2), exponents, value, None),
            ("mxfp8", octets.view(1, 1, 256, 256), exponents, octets.float(), None),
        ):
            width = 16 if name == "nvfp4" else 32
            of_blocks = blocks.view(torch.uint8).view(256, 1).repeat(1, 256 // width).view(blocks.dtype)
            call = {}
            for role in "qk":
                call |= {role: tensor.clone(), f"{role}_scale": of_blocks.view(1, 1, 256, -1).clone()}
                if factor is not None:
                    call[f"{role}_scale_2"] = torch.tensor([factor])
            exact = expected.double() * blocks.float().double()[:, None] * (factor or 1)
            with self.subTest(name):
                save_file(call, self.folder / "call.safetensors")
                torch.save(call, self.folder / "call.pt")
                arrays = {
                    key: item.view(torch.uint8).numpy() if item.element_size() == 1 else item.numpy()
                    for key, item in call.items()
                }
                np.savez(self.folder / "call.npz", **arrays)
                told = {"nvfp4": "nvfp4", "mxfp4": "mxfp4", "mxfp8": "e4m3"}[name]
                for file in ("call.safetensors", "call.pt", "call.npz"):
                    options = ["--q-dtype", told, "--k-dtype", told] if file.endswith("npz") else []
                    found = self.values_of(self.folder / file, *options)
                    for role in "qk":
                        self.assertEqual(found[role].dtype, torch.float32)
                        self.assertTrue(torch.equal(found[role][0, 0], exact.float()), file)
                    info = json.loads(program("info", self.folder / file, *options, "--json").stdout)
                    self.assertRegex(info["calls"][0]["codes"][0], f"q: {name}.* with a scale each {width} channels")


if __name__ == "__main__":
    unittest.main()
