"""Shared by the capture scripts: options, loading a pipeline, running it under a capture."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

import attnscope_capture
import small_models


def parser(description: str, families: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Options of every script; with `families`, --random takes one of their names."""
    p = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    p.add_argument("--model", help="name on the Hugging Face hub, or a folder")
    p.add_argument("--prompt", default="a dog runs on the beach")
    p.add_argument("--negative-prompt", default="")
    p.add_argument("--out", default="dump", help="folder of the capture")
    p.add_argument("--layers", default="all", help="0,3-7  8-  0-39:5  all")
    p.add_argument("--steps", default="all", help="denoising steps to record, as --layers")
    p.add_argument("--heads", default="all", help="one range, as 4-7")
    p.add_argument("--kinds", default="all", choices=["all", "self", "cross", "joint"])
    p.add_argument("--branch", default="cond", choices=["cond", "uncond", "both"])
    p.add_argument("--rows", type=int, default=64, help="rows of the true output, to check the capture by")
    p.add_argument("--no-values", action="store_true", help="leave out v: smaller, but it cannot be checked")
    p.add_argument("--num-steps", type=int, default=50, help="denoising steps of the run")
    p.add_argument("--frames", type=int)
    p.add_argument("--height", type=int)
    p.add_argument("--width", type=int)
    p.add_argument("--guidance", type=float, help="guidance scale (default: the pipeline's)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--dtype", default="bfloat16", choices=["float16", "bfloat16", "float32"])
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--offload", action="store_true", help="keep only the part that runs on the GPU")
    how: dict[str, Any] = {"choices": families} if families else {"action": "store_true"}
    p.add_argument(
        "--random",
        **how,
        help="the architecture at small size with random weights and embeddings: no download",
    )
    p.add_argument(
        "--rank",
        type=rank,
        metavar="R/N",
        help="process R of N that run the model together, where torchrun does not tell",
    )
    p.add_argument("--force", action="store_true", help="replace the capture in --out")
    return p


def rank(text: str) -> tuple[int, int]:
    """The numbers of "0/2"."""
    this, _, all_of_them = text.partition("/")
    try:
        return int(this), int(all_of_them)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected R/N, such as 0/2 (got {text!r})") from None


def fail(message: object) -> None:
    print(f"{sys.argv[0]}: {message}", file=sys.stderr)
    sys.exit(1)


def capture_options(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "layers": args.layers,
        "steps": args.steps,
        "heads": args.heads,
        "branch": args.branch,
        "kinds": args.kinds,
        "rows": args.rows,
        "values": not args.no_values,
        "force": args.force,
        "rank": args.rank,
        "extra": {"seed": args.seed, "num_steps": args.num_steps},
    }


def load_pipeline(args: argparse.Namespace, cls: Any) -> Any:
    """A diffusers pipeline on its device."""
    if args.model is None:
        fail("--model is needed (or --random, which needs none)")
    pipe = cls.from_pretrained(args.model, torch_dtype=getattr(torch, args.dtype))
    if args.offload:
        pipe.enable_model_cpu_offload(device=args.device)
    else:
        pipe.to(args.device)
    if getattr(pipe, "vae", None) is not None and hasattr(pipe.vae, "enable_tiling"):
        pipe.vae.enable_tiling()
    return pipe


def pipeline_arguments(args: argparse.Namespace, **names: str) -> dict[str, Any]:
    """Arguments of a pipeline's call that were given; names: what the pipeline calls them."""
    given = {
        "height": args.height,
        "width": args.width,
        names.get("frames", "num_frames"): args.frames,
        names.get("guidance", "guidance_scale"): args.guidance,
        "negative_prompt": args.negative_prompt or None,
    }
    return {
        "prompt": args.prompt,
        "num_inference_steps": args.num_steps,
        "generator": torch.Generator("cpu").manual_seed(args.seed),
        **{k: v for k, v in given.items() if v is not None},
    }


def run(args: argparse.Namespace, pipe: Any, arguments: dict[str, Any]) -> None:
    """Runs the pipeline under a capture and adds its pictures."""
    try:
        with attnscope_capture.capture(pipe, args.out, **capture_options(args)) as cap:
            result = pipe(**arguments)
        cap.add_video(result.frames[0] if hasattr(result, "frames") else result.images[0])
    except attnscope_capture.CaptureError as error:
        fail(error)


def run_random(args: argparse.Namespace, make: Callable[..., small_models.Small]) -> None:
    """Runs a small random model under a capture; its latents are no pictures."""
    small = make(getattr(torch, args.dtype))
    small.pipe.to(args.device)
    try:
        with attnscope_capture.capture(
            small.pipe, args.out, model=f"{make.__name__}, small, random weights", **capture_options(args)
        ):
            small.run(args.num_steps)
    except attnscope_capture.CaptureError as error:
        fail(error)
