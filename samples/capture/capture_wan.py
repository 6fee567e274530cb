"""Makes a video with Wan 2.1 or 2.2 (text to video) and records its attention.

  python capture_wan.py --model Wan-AI/Wan2.1-T2V-1.3B-Diffusers --prompt "a dog runs" \\
      --layers 0,14,29 --steps 0,25,49 --kinds self
  python capture_wan.py --random --num-steps 3 --out dump

Self- and cross-attention are both recorded; of the 14B models of Wan 2.2, both transformers.
"""

import script_options
import small_models


def main() -> None:
    p = script_options.parser(__doc__.split("\n")[0])
    p.add_argument("--two", action="store_true", help="with --random: two transformers, as Wan2.2-A14B")
    args = p.parse_args()
    if args.random:
        script_options.run_random(args, wan_22 if args.two else small_models.wan)
        return
    from diffusers import WanPipeline

    pipe = script_options.load_pipeline(args, WanPipeline)
    script_options.run(args, pipe, script_options.pipeline_arguments(args))


def wan_22(dtype: object) -> small_models.Small:
    return small_models.wan(dtype, two=True)


if __name__ == "__main__":
    main()
