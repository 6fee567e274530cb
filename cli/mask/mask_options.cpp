#include "cli/mask/mask_options.h"

#include "cli/common/output_options.h"
#include "cli/run/shard_option.h"
#include "core/patterns/mask_pattern.h"

namespace attnscope {

void add_mask_options(CommandParser& command, MaskOptions& o) {
  add_capture_options(command, o.capture, "--own-mask");
  command
      .add_option(
          "--mask", o.masks,
          "a mask to measure (repeatable): NAME[:key=value,...], a block mask FILE.npy\n"
          "(bool [query blocks, key blocks] or [heads, ...]; --block, unless --save wrote it)\n"
          "or a FILE.json that joins masks by \"and\" and \"or\". Names: {} (topk: or blocks=N).\n"
          "From spatial on they keep all that is not video (up to topp, text=drop: but for the\n"
          "keys of text); sla, sparge, xattention, dfs and skip-softmax choose among text as\n"
          "well, unless told text=keep. From sol on they choose blocks as published kernels do "
          "(docs/lab.md)")
      .words(mask_pattern_words())
      .one_value_each()
      .type_name("MASK");
  command.add_option("-o", o.out, "write the table as .csv or .json; -: print it as CSV")
      .type_name("FILE");
  take_standard_output(command, o);
  command
      .add_option(
          "--save", o.save,
          "write the blocks that the mask keeps anything of, as bool [heads, query blocks,\n"
          "key blocks] (one call, one mask), and of what they are as FILE.npy.json")
      .type_name("FILE.npy");
  command
      .add_option(
          "--block", o.block,
          "tokens of a block in FILE.npy (where FILE.npy.json does not say), --save (the mask's\n"
          "own, else 128) and --time (128)")
      .in_range(1, int64_t{1} << 30)
      .type_name("N");
  command.add_flag("--exact", o.exact,
                   "oracle and output errors on all rows instead of 256 spread ones");
  command.add_flag(
      "--time", o.time,
      "time a few row panels with the mask's empty blocks left out and without the mask:\n"
      "column time is their ratio");
  add_head_run_options(command, o);
  command.add_flag("--resume", o.resume, "go on with what an interrupted run left of FILE");
  add_output_options(command, o,
                     {.dry_run = "print what it would take; compute no scores",
                      .force = "replace files that exist",
                      .json = "print the table as JSON"});
}

}  // namespace attnscope
