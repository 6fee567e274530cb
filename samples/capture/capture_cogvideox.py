"""Makes a video with CogVideoX and records its attention.

  python capture_cogvideox.py --model THUDM/CogVideoX-2b --dtype float16 --prompt "a dog runs" \\
      --layers 0,15,29 --steps 0,25,49
  python capture_cogvideox.py --random --num-steps 3 --out dump
  python capture_cogvideox.py --model FOLDER --embeddings prompts.npy --row 1 --num-steps 20 --out dump

With --embeddings, FOLDER holds a transformer alone that was trained by flow matching on pixels (no VAE,
no text encoder): prompts.npy is [prompts, tokens, channels], row 0 the empty prompt. A prompts.json
beside it, {"prompts": [{"text", "tokens", "valid"}]}, tells the words.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

import attnscope_capture
import script_options
import small_models


def levels(steps: int, shift: float = 3.0) -> torch.Tensor:
    """Noise levels from 1 to 0, [steps + 1], moved towards noise."""
    u = torch.linspace(1, 0, steps + 1)
    return shift * u / (1 + (shift - 1) * u)


@torch.no_grad()
def sample(
    model: Any, words: torch.Tensor, shape: tuple[int, int, int], steps: int, guidance: float, seed: int
) -> torch.Tensor:
    """A video [T, 3, H, W] in 0..1 by Euler steps; words [2, tokens, channels] are [uncond; cond]."""
    from diffusers.models.embeddings import get_3d_rotary_pos_embed

    frames, height, width = shape
    config, weights = model.config, next(model.parameters())
    rows, columns = height // config.patch_size, width // config.patch_size
    rope = (
        get_3d_rotary_pos_embed(
            config.attention_head_dim,
            ((0, 0), (rows, columns)),
            (rows, columns),
            frames,
            device=weights.device,
        )
        if config.use_rotary_positional_embeddings
        else None
    )
    x = torch.randn(
        1, frames, config.in_channels, height, width, generator=torch.Generator().manual_seed(seed)
    ).to(weights.device)
    noise = levels(steps)
    for i in range(steps):
        stamp = (noise[i] * 1000).expand(2).to(weights.device)
        v = model(
            torch.cat([x, x]).to(weights.dtype),
            words.to(weights),
            stamp,
            image_rotary_emb=rope,
            return_dict=False,
        )[0].float()
        uncond, cond = v.chunk(2)
        x = x + (noise[i + 1] - noise[i]).to(x.device) * (uncond + guidance * (cond - uncond))
    return ((x[0].clamp(-1, 1) + 1) / 2).cpu()


def run_transformer(args: argparse.Namespace) -> None:
    """--embeddings: a transformer alone."""
    import numpy
    from diffusers import CogVideoXTransformer3DModel

    table = torch.from_numpy(numpy.load(args.embeddings)).float()
    if table.ndim != 3 or not 0 <= args.row < len(table):
        script_options.fail(
            f"{args.embeddings}: expected [prompts, tokens, channels] with row {args.row} "
            f"(got {list(table.shape)})"
        )
    model = CogVideoXTransformer3DModel.from_pretrained(args.model, torch_dtype=getattr(torch, args.dtype))
    model = model.eval().to(args.device)
    facts: dict[str, Any] = {"prompt": args.prompt}
    names = Path(args.embeddings).with_suffix(".json")
    if names.exists():
        known = json.loads(names.read_text())["prompts"]
        cond, none = known[args.row], known[0]
        facts = {
            "prompt": cond["text"],
            "tokens": {"cond": cond["tokens"], "uncond": none["tokens"]},
            "text_valid": {"cond": cond["valid"], "uncond": none["valid"]},
        }
    c = model.config
    shape = (args.frames or c.sample_frames, args.height or c.sample_height, args.width or c.sample_width)
    with attnscope_capture.capture(
        model, args.out, branches=["uncond", "cond"], **facts, **script_options.capture_options(args)
    ) as cap:
        video = sample(
            model,
            torch.stack([table[0], table[args.row]]),
            shape,
            args.num_steps,
            args.guidance or 3.0,
            args.seed,
        )
    cap.add_video(video, frames_per_latent=1)


def main() -> None:
    p = script_options.parser(__doc__.split("\n")[0])
    p.add_argument("--embeddings", help=".npy of prompts' embeddings: --model is a transformer alone")
    p.add_argument("--row", type=int, default=1, help="row of --embeddings that is the prompt")
    args = p.parse_args()
    if args.random:
        script_options.run_random(args, small_models.cogvideox)
        return
    if args.embeddings:
        if args.model is None:
            script_options.fail("--embeddings needs --model, a folder with a transformer")
        try:
            run_transformer(args)
        except (attnscope_capture.CaptureError, OSError, ValueError) as error:
            script_options.fail(error)
        return
    from diffusers import CogVideoXPipeline

    pipe = script_options.load_pipeline(args, CogVideoXPipeline)
    script_options.run(args, pipe, script_options.pipeline_arguments(args))


if __name__ == "__main__":
    main()
