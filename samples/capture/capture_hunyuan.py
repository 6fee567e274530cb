"""Makes a video with HunyuanVideo and records its attention.

  python capture_hunyuan.py --model hunyuanvideo-community/HunyuanVideo --prompt "a dog runs" \\
      --frames 61 --height 544 --width 960 --layers 5,25,45 --steps 0,15,29 --heads 0-5 --offload
  python capture_hunyuan.py --random --num-steps 3 --out dump

Its guidance is distilled: there is one branch, cond.
"""

import script_options
import small_models


def main() -> None:
    args = script_options.parser(__doc__.split("\n")[0]).parse_args()
    if args.random:
        script_options.run_random(args, small_models.hunyuan)
        return
    from diffusers import HunyuanVideoPipeline

    pipe = script_options.load_pipeline(args, HunyuanVideoPipeline)
    script_options.run(args, pipe, script_options.pipeline_arguments(args))


if __name__ == "__main__":
    main()
