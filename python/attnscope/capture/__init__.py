"""Records Q and K of attention calls while a model runs, as an attnscope capture.

    from attnscope.capture import capture

    with capture(pipe, "dump/", layers="0,12-14", steps="0,10,49") as cap:
        video = pipe(prompt).frames[0]
    cap.add_video(video)

Needs torch and safetensors. While the block runs, torch.nn.functional.scaled_dot_product_attention, the
backends of diffusers' dispatcher, transformers' attention functions and functions given to wrap() are
replaced by functions that call the real ones with the same arguments and, inside the chosen attention
modules, copy what they were given: q and k after normalisation and rotary embedding, the mask, the
scale, v, and some rows of the result. What the model computes is not changed by a bit. Of a model that
torch.compile compiled before the block, an operator in its graph hands the same out.

Shapes: B batch items, H heads, Hkv key heads, Nq queries, Nk keys, d channels; q [B, H, Nq, d],
k [B, Hkv, Nk, d], v [B, Hkv, Nk, dv]. A grid is (T, H, W) in tokens, row-major. Steps, layers and
heads count from 0. Sizes are bytes.

Other entries: record() for one call of a bare function, capture(None, …) for every call in a block,
estimate() for the size of a dump before it is made, wrap() for an attention function of one's own, install()
for servers, where no with-block fits.
"""

from .call_size import CallSize
from .calls import dispatched_call, transformers_call
from .choice import head_range, key_head_range, kind_test, largest_named, parse_numbers
from .entry import capture, record
from .errors import CaptureError, LabelError
from .families import FAMILIES, Family
from .files import FORMAT, FORMAT_2, FolderLock, clear_folder, make_folder, read_catalogue, replace_file
from .forward import Forward
from .grids import Grid
from .hooks import wrap
from .install import install
from .layouts import Layout
from .masks import MASK_LIMIT, chosen_mask, stored_mask
from .models import LAYOUTS
from .options import Options
from .parallel import SequenceShard, WholeCall
from .pictures import frames_per_latent, latent_frames
from .prompts import PromptWatch
from .recorder import Capture
from .selfcheck import check_result
from .sizes import estimate, readable
from .slots import Slot
from .stacks import Place
from .steps import StepCounter, batch_branches, context_branch, timestep_key
from .tensors import STORED_DTYPES, Call, Snapshot, chosen_part, output_rows
from .tokens import Segment
from .writer import QUEUED_CALLS, Job, Sink, Writer

__all__ = [
    "FAMILIES",
    "FORMAT",
    "FORMAT_2",
    "LAYOUTS",
    "MASK_LIMIT",
    "QUEUED_CALLS",
    "STORED_DTYPES",
    "Call",
    "CallSize",
    "Capture",
    "CaptureError",
    "Family",
    "FolderLock",
    "Forward",
    "Grid",
    "Job",
    "LabelError",
    "Layout",
    "Options",
    "Place",
    "PromptWatch",
    "Segment",
    "SequenceShard",
    "Sink",
    "Slot",
    "Snapshot",
    "StepCounter",
    "WholeCall",
    "Writer",
    "batch_branches",
    "capture",
    "check_result",
    "chosen_mask",
    "chosen_part",
    "clear_folder",
    "context_branch",
    "dispatched_call",
    "estimate",
    "frames_per_latent",
    "head_range",
    "install",
    "key_head_range",
    "kind_test",
    "largest_named",
    "latent_frames",
    "make_folder",
    "output_rows",
    "parse_numbers",
    "read_catalogue",
    "readable",
    "record",
    "replace_file",
    "stored_mask",
    "timestep_key",
    "transformers_call",
    "wrap",
]
