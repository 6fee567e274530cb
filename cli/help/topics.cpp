#include "cli/help/topics.h"

namespace attnscope {
namespace {

constexpr std::string_view kSelect =
    R"(Choosing calls and heads. Each option narrows what the others leave.

  --steps --layers --heads --batch --chunks LIST
        numbers as they were recorded:
        3          one                 0,3-7     several; a range has both ends
        8-         from 8 on           !4        all but 4
        0-39:5     every fifth         all, last
  --branch --kind --blocks --slots NAME
        names, * for any characters: --branch cond, --slots 'audio_*'
  --pick 3.1,12.7
        head 1 of layer 3 and head 7 of layer 12; 10:3.1 is of step 10 alone,
        refiner.0/attn.1 names a block and an attention in it
  --from FILE
        the heads that a file lists: a .json of stats, mask or diff, a table of
        stats (.csv, .h5), or {"format": "attnscope-heads/1", "heads": [...]}
  --where CONDITION
        those whose names and numbers hold: 'class=temporal entropy<5 layer>=10'
        NAME OP VALUE with = != < <= > >=; or, not and brackets. NAME: step,
        layer, head, batch, chunk, branch, kind, block, slot, class, or a number
        of stats. null is neither true nor false.

What is named and not there is left out and told; nothing left is an error.

Ranges, side by side. With "-" both ends belong to it, with ":" the last not:

  3-7              lists of numbers: 3 4 5 6 7; 0-39:5 every fifth
  3:7              --rows --cols --query of tokens: 3 4 5 6; 226: to the end
  --zoom 0,9,4,8   view: queries 0:9 and keys 4:8

  attnscope stats dump/ --where temporal --sort entropy --top 8 -o few.json
  attnscope export dump/ --from few.json -o maps.h5
)";

constexpr std::string_view kTokens =
    R"(Choosing tokens: of query, export, render, diff and rollout.

  --query T,Y,X       a video token by latent frame, row and column, from 0
  --query 5,0:30,10:12
                      a box of them; ranges are half-open
  --query NAME:T,Y,X  of another segment of a token map; NAME:N its N-th token
  --at frame=40,x=352,y=240
                      the video token of a pixel of the decoded video; where
                      no preset, model or token map tells how much a token
                      covers, tell it: ...,cell=4x16x16 (frames, pixels)
  --index N           a token by its place in the sequence
  --text-token N      a text token, counted within the text; A-B for a run
  --text-token WORD   a word or phrase of the prompt: dog, "red circle"

All may be repeated: several tokens are averaged, each once. export takes
--queries LIST as well, places in the sequence: 0,226-300.

Which tokens there are: attnscope info says the grid (frames x rows x columns)
and the text. Where nothing was recorded, tell it:

  --grid 13x30x45     latent frames, rows, columns
  --text 226@start    text tokens in front; 256@end behind; none; all
  --preset NAME       both, of a known model

  --reverse           who attends to the tokens, instead of where they look
  --rows A:B --cols A:B
                      a crop of queries and keys, half-open (export, render);
                      the softmax remains over all keys

  attnscope query samples/moving-shapes --query 3,8,7 --layers 2 -o film.png
)";

constexpr std::string_view kInputs =
    R"(What can be opened as a CAPTURE:

  a folder of safetensors files with capture.json, as attnscope.capture writes
  one file with q and k: safetensors, .npz, .pt, HDF5
  a folder or a file with many: blocks.3.attn.q, attn_It5_L2_H0_q.npy ...; their
        names tell step and layer; --pattern says how where they are unusual
  q.pt k.pt [v.pt], or --q FILE[:KEY] --k FILE[:KEY] [--v FILE[:KEY]]
  an export (.h5), for info, query, render, diff, view and verify

What nobody recorded is told by options, and never guessed in silence:

  --layout bhsd       order of the axes: batch, heads, sequence, dimension
  --grid --text       which tokens are what (attnscope help tokens)
  --preset NAME       grid and text of a model
  --scale --mask --score
                      of softmax(scale q.k + mask); auto: 1/sqrt(d)
  --rope NAME         q and k were recorded before the rotary embedding
  --as NAME=VALUE     a fact: layer=17, step=25, branch=cond, model=wan2.1-14b
  --ignore NAME       leave out what stands beside q and k by this name

attnscope info FILE shows what was found and what was guessed; attnscope verify
holds rows that the model itself wrote against what is computed.

  attnscope info q.npy k.npy --preset cogvideox-5b --as layer=17
)";

constexpr std::string_view kMemory =
    R"(Memory, threads and devices.

  --memory SIZE       memory to work in: 256MiB, 4GB, 50% of what is free; by
                      default the smaller of 2 GiB and half of what is free.
                      It bounds tiles, buffers and results; the program itself
                      and the files that it has open take some 20 MiB more.
  --threads N         worker threads; by default one a core
  --backend NAME      auto, cpu, cuda, reference (double precision, slow), or
                      one of cpu-amx, cpu-bf16, cpu-fma, cuda-wgmma ...
  --vram SIZE         device memory for cuda; by default 90% of what is free

Results do not depend on memory and threads: the same bytes are written.

  --dry-run           tells heads, FLOP, bytes, memory and time of a run
  --max-size SIZE     export: refuses before anything is written
  --resume            goes on where an interrupted run stopped
  --cache DIR|none    where row sums and numbers of heads are kept; by default
                      .attnscope in the capture
  --shard I/N         one of N parts of the same plan, on any machine; merge
                      joins them. Under mpirun processes share one run.

  attnscope export dump/ -o maps.h5 --memory 256MiB --dry-run
)";

constexpr std::string_view kJson =
    R"(JSON for programs: docs/json.md has all of it.

--json prints one object on standard output; messages for people go to standard
error (--quiet: only warnings). Every answer has

  format              names it, with a version: attnscope-stats/1
  attnscope_version   of the program
  input, out          files as they were named; null where there is none
  capture_hash        a digest of what the result was made of, or null

Fields are added, never renamed. null is what is not known, or not defined.
Rows of heads have step, layer, branch, kind, block, slot, batch and head.

An error prints {"format": "attnscope-error/1", "kind", "message", "file",
"place"}, also where the command line itself is wrong; kind is one of usage,
file, value, resource, unavailable, interrupted, verification and defect
(attnscope help exit).

  attnscope stats dump/ --layers 12 --json | jq '.heads[] | [.head, .class]'
)";

constexpr std::string_view kExit =
    R"(Exit codes, of every command:

  0   done
  1   failed: a file, the disk, memory, numbers that cannot be used, a feature
      that was not built
  2   usage: the request cannot be meant
  3   a result that says no: verify found a difference, info of an export that
      is not complete
  4   interrupted (Ctrl-C, SIGTERM); what was done is kept where a command
      says so, and --resume goes on with it
  128 + N  ended by signal N

An output is written beside its place and renamed when it is whole: a name that
is there has all its contents. One that exists is replaced only with --force.
)";

constexpr HelpTopic kTopics[] = {
    {"select", "which calls and heads", kSelect}, {"tokens", "which tokens", kTokens},
    {"inputs", "what can be opened", kInputs},    {"memory", "memory, threads, devices", kMemory},
    {"json", "answers for programs", kJson},      {"exit", "exit codes", kExit},
};

}  // namespace

std::span<const HelpTopic> help_topics() { return kTopics; }

}  // namespace attnscope
