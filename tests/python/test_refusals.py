"""Everything that cannot be recorded truthfully is refused in one message that says what to do."""

import shutil
import types
import unittest
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F

import attnscope_capture
import small_models
from attnscope_capture import CaptureError, capture
from support import TOLERANCE, WRITER, CaptureTest, output_error, read_capture


class Refusals(CaptureTest):
    def out(self) -> str:
        return str(self.folder / "d")

    def test_a_processor_that_goes_around_the_function(self) -> None:
        small = small_models.cogvideox()

        def around(attn, hidden_states, encoder_hidden_states, **more):  # type: ignore[no-untyped-def]
            return hidden_states, encoder_hidden_states

        for block in small.pipe.transformer.transformer_blocks:
            block.attn1.forward = types.MethodType(lambda self, **kw: around(self, **kw), block.attn1)
        # Found out at the first forward, not at the step that was asked for.
        with self.refused("no scaled_dot_product_attention call", "native", "wrap"):
            with capture(small.pipe, self.out(), steps=2):
                small.run(3)
        self.assertFalse((self.folder / "d" / "capture.json").exists())

    def test_skipped_layers(self) -> None:
        small = small_models.cogvideox()
        block = small.pipe.transformer.transformer_blocks[1]
        block.attn1.forward = lambda hidden_states, encoder_hidden_states, **more: (
            hidden_states,
            encoder_hidden_states,
        )
        with self.refused("transformer_blocks.1.attn1", "0 attention calls instead of 1", "disable_cache"):
            with capture(small.pipe, self.out()):
                small.run(1)
        shutil.rmtree(self.out())
        with capture(small.pipe, self.out(), layers="0,2"):  # what is asked for is all there
            small.run(1)

    def test_a_module_that_attends_twice(self) -> None:
        """An IP adapter, which has queries of a known block attend to a picture as well."""
        small = small_models.cogvideox()
        attention = small.pipe.transformer.transformer_blocks[1].attn1
        real = attention.forward
        attention.forward = lambda *args, **more: (real(*args, **more), real(*args, **more))[1]
        with self.refused("transformer_blocks.1.attn1 made 2 attention calls instead of 1", "IP adapter"):
            with capture(small.pipe, self.out()):
                small.run(1)

    def test_a_caching_accelerator(self) -> None:
        from diffusers import PyramidAttentionBroadcastConfig

        small = small_models.cogvideox()
        small.pipe.transformer.enable_cache(
            PyramidAttentionBroadcastConfig(
                spatial_attention_block_skip_range=2, current_timestep_callback=lambda: 500
            )
        )
        with self.refused("disable_cache"), capture(small.pipe, self.out()):
            pass
        small.pipe.transformer.disable_cache()
        with capture(small.pipe, self.out(), steps=0):
            small.run(1)

    def test_a_cache_that_skips_later_steps(self) -> None:
        from diffusers import FasterCacheConfig

        small = small_models.cogvideox()
        small.pipe.transformer.enable_cache(
            FasterCacheConfig(
                spatial_attention_block_skip_range=2,
                spatial_attention_timestep_skip_range=(-1, 1001),
                attention_weight_callback=lambda _: 0.5,
                current_timestep_callback=lambda: 500,
            )
        )
        small.pipe.transformer._cache_config = None  # an accelerator that does not tell
        with self.refused("attention calls instead of 1"), capture(small.pipe, self.out()):
            small.run(6)

    def test_gradient_checkpointing_of_a_compiled_model(self) -> None:
        model = small_models.cogvideox().pipe.transformer
        model.enable_gradient_checkpointing()
        model.compile(backend="eager")
        inputs = self.inputs()
        with self.refused("no_grad", "before it is compiled"), capture(model, self.out()):
            model(**inputs)
        with torch.no_grad(), capture(model, self.out() + "2"):
            model(**inputs)

    def inputs(self, batch: int = 1) -> dict[str, torch.Tensor]:
        return {
            "hidden_states": torch.randn(batch, 3, 4, 8, 12),
            "encoder_hidden_states": torch.randn(batch, 6, 12),
            "timestep": torch.full((batch,), 500),
        }

    def test_dropout(self) -> None:
        q = torch.randn(1, 2, 5, 8)
        with self.refused("dropout 0.1", "eval"), capture(None, self.out()):
            F.scaled_dot_product_attention(q, q, q, dropout_p=0.1)

    def test_split_heads(self) -> None:
        transformer = small_models.cogvideox().pipe.transformer
        with self.refused("3 of 6 heads", "head_offset"), torch.no_grad():
            with capture(transformer, self.out()):
                with mock.patch.object(
                    attnscope_capture.Capture,
                    "_offset",
                    lambda s, f, c, slot, heads: original(s, f, c, slot, 6),
                ):
                    transformer(**self.inputs())

    def test_two_captures_at_once(self) -> None:
        small = small_models.cogvideox()
        with capture(small.pipe, self.out()):
            with self.refused("nested"), capture(small.pipe, self.out() + "2"):
                pass
            small.run(1)
        self.assertFalse((self.folder / "d2").exists())

    def test_an_old_capture_is_kept(self) -> None:
        small = small_models.cogvideox()
        with capture(small.pipe, self.out(), steps=0, layers=0) as cap:
            small.run(1)
        with self.refused("already holds a capture", "force"), capture(small.pipe, self.out()):
            pass
        with self.refused("runs once"), cap:
            pass
        (self.folder / "d" / "notes.txt").write_text("mine")
        with capture(small.pipe, self.out(), steps=0, layers=1, force=True):
            small.run(1)
        self.assertEqual({c.facts["layer"] for c in read_capture(self.folder / "d")}, {1})
        self.assertEqual(
            sorted(p.name for p in (self.folder / "d").iterdir()),
            ["capture.json", "notes.txt", "step0000_layer001_joint.safetensors"],
        )

    def test_no_room(self) -> None:
        small = small_models.cogvideox()
        usage = types.SimpleNamespace(free=10000)
        with mock.patch.object(shutil, "disk_usage", return_value=usage):
            with self.refused("do not fit", "9.8 KiB are free"), capture(small.pipe, self.out()):
                small.run(1)
        self.assertEqual(list((self.folder / "d").iterdir()), [])

    def test_a_disk_that_fails(self) -> None:
        small = small_models.cogvideox()
        with mock.patch.object(WRITER, "save_call", side_effect=OSError("disk on fire")):
            with self.refused("writing failed", "disk on fire"), capture(small.pipe, self.out()):
                small.run(2)
        self.assertEqual(list((self.folder / "d").iterdir()), [])

    def test_what_does_not_exist(self) -> None:
        small = small_models.cogvideox()
        for options, words in (
            ({"layers": 3}, ("layers 0 to 2", "asked for 3")),
            ({"heads": "0-3"}, ("heads 0 to 2", "asked for 3")),
            ({"heads": "0,2"}, ("contiguous",)),
            ({"layers": "2-1"}, ("ends before it begins",)),
            ({"steps": "last"}, ("expected numbers",)),
            ({"layer": 3}, ("unknown option layer",)),
            ({"kinds": "temporal"}, ("self, cross or joint",)),
            ({"guidance": "both"}, ("batch", "forwards")),
            ({"grid": (2, 4, 6)}, ("78 tokens are not the grid 2x4x6",)),
            ({"text": "5@start"}, ("78 tokens are not the grid 3x4x6 and 5 text tokens",)),
            ({"branch": "left"}, ("the batch has cond, uncond",)),
            ({"branches": ["a", "b", "c"]}, ("does not divide a batch of 2",)),
        ):
            with self.refused(*words), capture(small.pipe, self.out(), **options):
                small.run(1)
            shutil.rmtree(self.out(), ignore_errors=True)

    def test_steps_that_never_come(self) -> None:
        small = small_models.cogvideox()
        with self.refused("nothing was recorded", "steps 0 to 1"):
            with capture(small.pipe, self.out(), steps="5"):
                small.run(2)
        with capture(small.pipe, self.out(), steps="1,5"):
            small.run(2)
        self.assertIn("step 5 was asked for, but the run had 2 steps", self.said.getvalue())
        with self.refused("did not run"), capture(small.pipe, self.out() + "2"):
            pass

    def test_models_without_a_transformer(self) -> None:
        with self.refused("no transformer"), capture(object(), self.out()):
            pass
        with self.refused("no attention modules"), capture(torch.nn.Linear(2, 2), self.out()):
            pass
        with self.refused("no attention call"), capture(None, self.out()):
            pass


original = attnscope_capture.Capture._offset

# Models of transformers without its functions: options of the configuration, and the size of pictures [T,] C, H, W.
STACK = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
WINDOWS = {"image_size": 16, "patch_size": 4, "embed_dim": 8, "depths": [1], "num_heads": [2], "window_size": 2}
PATCHES = {"image_size": 32, "patch_size": 16, **STACK}
OWN_OPERATIONS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "Swinv2": (WINDOWS, (3, 16, 16)),
    "Timesformer": ({**PATCHES, "num_frames": 2}, (2, 3, 32, 32)),
    "VitDet": ({**PATCHES, "pretrain_image_size": 32}, (3, 32, 32)),
    "Bloom": ({"vocab_size": 40, "hidden_size": 32, "n_layer": 1, "n_head": 2}, ()),
    "Mpt": ({"vocab_size": 40, "d_model": 32, "n_layers": 1, "n_heads": 2}, ()),
    "Deberta": ({"vocab_size": 40, **STACK}, ()),
    "DebertaV2": ({"vocab_size": 40, **STACK}, ()),
    "Longformer": ({"vocab_size": 40, **STACK, "attention_window": 8}, ()),
    "BigBird": ({"vocab_size": 40, **STACK}, ()),
}


class OfTransformers(CaptureTest):
    def model(self, name: str, options: dict[str, Any], **more: Any) -> Any:
        import transformers

        config = getattr(transformers, f"{name}Config")(**options)
        return getattr(transformers, f"{name}Model")._from_config(config, **more).eval()

    def test_operations_of_their_own(self) -> None:
        """Nobody is told to load with sdpa what transformers does not load with it."""
        for name, (options, sizes) in OWN_OPERATIONS.items():
            model = self.model(name, options)
            inputs = {"pixel_values": torch.randn(1, *sizes)} if sizes else {"input_ids": torch.arange(3, 27)[None]}
            with self.subTest(name), self.assertRaises(CaptureError) as caught:
                with torch.no_grad(), capture(model, self.folder / name):
                    model(**inputs)
            self.assertIn(f"no attention call came from {name}Model: it computes its attention", str(caught.exception))
            self.assertIn("capture.wrap(function)", str(caught.exception))
            self.assertNotIn("sdpa", str(caught.exception))

    def test_modules_that_make_no_call(self) -> None:
        """Of the user's own pattern the recorder says that it fits no attention, nothing of the model."""
        model = self.model("Llama", {"vocab_size": 40, **STACK}, attn_implementation="sdpa")
        with self.assertRaises(CaptureError) as caught, torch.no_grad():
            with capture(model, self.folder / "d", modules="mlp$"):
                model(torch.arange(3, 27)[None])
        self.assertEqual(str(caught.exception), "modules='mlp$': no attention call came from the modules that it names")

    def test_sdpa_where_the_class_has_it(self) -> None:
        ids = torch.arange(3, 27)[None]
        options = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
        model = self.model("Falcon", options, attn_implementation="eager")
        with self.refused('with attention "eager" it calls no function', 'attn_implementation="sdpa"'):
            with torch.no_grad(), capture(model, self.folder / "eager", force=True):
                model(ids)
        model = self.model("Falcon", options, attn_implementation="sdpa")
        with torch.no_grad(), capture(model, self.folder / "sdpa", force=True):
            model(ids)
        (call,) = read_capture(self.folder / "sdpa")
        self.assertLess(output_error(call), TOLERANCE[torch.float32])


if __name__ == "__main__":
    unittest.main()
