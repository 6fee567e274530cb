"""Runs any diffusers pipeline, or any model of transformers, and records its attention.

  python capture_any.py --model black-forest-labs/FLUX.1-dev --prompt "a dog" --num-steps 28 --layers 0,18,56
  python capture_any.py --model genmo/mochi-1-preview --prompt "a dog" --frames 85 --layers 24
  python capture_any.py --model bert-base-uncased --text "The dog runs on the beach."
  python capture_any.py --random latte --num-steps 3 --out dump

What is known: CogVideoX, HunyuanVideo, Wan, LTX, Mochi, Flux, SD3, Latte. Of another model, say what
its tokens are with --grid and --span.
"""

from __future__ import annotations

import argparse
import inspect
import sys

import torch

import attnscope_capture
import script_options
import small_models


def run_language_model(args: argparse.Namespace) -> None:
    """One forward over --text."""
    from transformers import AutoModel, AutoTokenizer

    if args.model is None:
        script_options.fail("--model is needed")
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModel.from_pretrained(
        args.model, dtype=getattr(torch, args.dtype), attn_implementation="sdpa"
    )
    model = model.eval().to(args.device)
    inputs = tokenizer(args.text, return_tensors="pt").to(args.device)
    if "use_cache" in inspect.signature(type(model).forward).parameters:
        inputs["use_cache"] = False
    options = {**script_options.capture_options(args), "extra": None}
    with (
        torch.no_grad(),
        attnscope_capture.capture(model, args.out, tokenizer=tokenizer, prompt=args.text, **options),
    ):
        model(**inputs)


def run_pipeline(args: argparse.Namespace) -> None:
    from diffusers import DiffusionPipeline

    pipe = script_options.load_pipeline(args, DiffusionPipeline)
    takes = inspect.signature(type(pipe).__call__).parameters
    frames = "video_length" if "video_length" in takes else "num_frames"
    arguments = {
        k: v for k, v in script_options.pipeline_arguments(args, frames=frames).items() if k in takes
    }
    options = {
        **script_options.capture_options(args),
        "grid": args.grid,
        "text": args.span,
        "modules": args.modules,
    }
    with attnscope_capture.capture(pipe, args.out, **options) as cap:
        result = pipe(**arguments)
    video = result.frames[0] if hasattr(result, "frames") else result.images[0]
    try:
        cap.add_video(video)
    except attnscope_capture.CaptureError as error:  # the maps are there all the same
        print(f"{sys.argv[0]}: no pictures: {error}", file=sys.stderr)


def main() -> None:
    p = script_options.parser(__doc__.split("\n")[0], families=sorted(small_models.FAMILIES))
    p.add_argument("--text", help="a text for a language model of transformers")
    p.add_argument("--grid", help="TxHxW in tokens, of a model that is not known")
    p.add_argument("--span", help="its text tokens: 226@start, 256@end, none, all")
    p.add_argument("--modules", help="a regular expression for the names of its attention modules")
    args = p.parse_args()
    if args.random:
        script_options.run_random(args, small_models.FAMILIES[args.random])
        return
    try:
        (run_language_model if args.text else run_pipeline)(args)
    except attnscope_capture.CaptureError as error:
        script_options.fail(error)


if __name__ == "__main__":
    main()
