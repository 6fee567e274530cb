"""U-Nets with IP adapters: their queries attend to a picture in calls beside those that attend to the text."""

import unittest
from typing import Any

import torch

import test_models_image
from attnscope_capture import capture
from support import TOLERANCE, CaptureTest, Spy, output_error, read_capture


def adapted_unet(pictures: int) -> tuple[Any, dict[str, Any]]:
    """A U-Net with so many adapters, of four tokens a picture each."""
    import diffusers
    from diffusers.models.attention_processor import IPAdapterAttnProcessor2_0

    torch.manual_seed(0)
    model, inputs = test_models_image.unet(diffusers.UNet2DConditionModel)
    widths = {n: model.get_submodule(n.removesuffix(".processor")).to_q.out_features for n in model.attn_processors}
    processors = {
        n: IPAdapterAttnProcessor2_0(widths[n], 12, (4,) * pictures) if n.endswith("attn2.processor") else p
        for n, p in model.attn_processors.items()
    }
    model.set_attn_processor(processors)
    model.encoder_hid_proj, model.config.encoder_hid_dim_type = torch.nn.Identity(), "ip_image_proj"
    keys = [torch.randn(2, 1, 4, 12) for _ in range(pictures)]
    return model.eval(), {**inputs, "added_cond_kwargs": {"image_embeds": keys}}


class Adapters(CaptureTest):
    def test_calls_with_a_picture_have_slots_of_their_own(self) -> None:
        for pictures, more in ((1, [".image"]), (2, [".image", ".image.2"])):
            model, inputs = adapted_unet(pictures)
            spy, out = Spy(), self.folder / f"{pictures}"
            with torch.no_grad(), spy(), capture(model, out, branches=["uncond", "cond"], branch="both"):
                model(**inputs)
            calls = read_capture(out)
            self.assertEqual(len(calls), len(spy.calls))
            for call, seen in zip(calls, spy.calls, strict=True):
                self.assertTrue(torch.equal(call["q"], seen["q"]) and torch.equal(call["k"], seen["k"]), call.file)
                self.assertLess(output_error(call), TOLERANCE[torch.float32])
            slots = list(dict.fromkeys(c.facts["slot"] for c in calls))
            self.assertEqual(slots, ["attn1", "attn2", *("attn2" + word for word in more)])
            for call in calls:
                if call.facts["slot"].startswith("attn2"):
                    (keys,) = call.facts["keys"]
                    words = ("text", 7) if call.facts["slot"] == "attn2" else ("other", 4)
                    self.assertEqual((call.facts["kind"], keys["modality"], keys["count"]), ("cross", *words))

    def test_they_can_be_chosen(self) -> None:
        model, inputs = adapted_unet(1)
        with torch.no_grad(), capture(model, self.folder / "d", branches=["uncond", "cond"], slots="*.image"):
            model(**inputs)
        calls = read_capture(self.folder / "d")
        self.assertEqual({c.facts["slot"] for c in calls}, {"attn2.image"})
        self.assertEqual({c["q"].shape[0] for c in calls}, {1})


if __name__ == "__main__":
    unittest.main()
