#include "cli/lab/lab_options.h"

#include "cli/common/output_options.h"
#include "core/patterns/mask_pattern.h"

namespace attnscope {

void add_lab_options(CommandParser& command, LabOptions& o) {
  add_capture_options(command, o.capture, "--own-mask");
  command
      .add_option(
          "--edit", o.edits,
          "an edit to measure (repeatable): NAME[:key=value,...], FILE.npy or FILE.json as --mask "
          "of\n"
          "attnscope mask has them, or dense. A value may be a list A/B/C or a range "
          "FROM..TO:COUNT,\n"
          "which stand for an edit each. Names: {}. From sol on, rest=renormalise, lost,\n"
          "row, centroid, coarse or linear (with gate=G) says what becomes of the blocks that are\n"
          "dropped (docs/lab.md)")
      .words(mask_pattern_words())
      .one_value_each()
      .type_name("EDIT");
  command.add_option("-o", o.out, "write the table as .csv or .json; -: print it as CSV")
      .type_name("FILE");
  take_standard_output(command, o);
  command
      .add_option("--block", o.block,
                  "tokens of a block in --edit FILE.npy, where FILE.npy.json does not say")
      .in_range(1, int64_t{1} << 30)
      .type_name("N");
  command.add_flag(
      "--exact", o.exact,
      "measure all rows instead of 256 spread ones, and the best that the same number\n"
      "of blocks could keep");
  add_head_run_options(command, o);
  command.add_flag("--resume", o.resume, "go on with what an interrupted run left of FILE");
  add_output_options(command, o,
                     {.dry_run = "print what it would take; compute no scores",
                      .force = "replace files that exist",
                      .json = "print the table as JSON"});
}

}  // namespace attnscope
