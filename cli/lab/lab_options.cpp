#include "cli/lab/lab_options.h"

#include "cli/common/output_options.h"
#include "core/patterns/mask_pattern.h"

namespace attnscope {

namespace {

/// Those of choosing an edit for each head, and of what then has the choice.
void add_choice_options(CommandParser& command, LabOptions& o) {
  command
      .add_option("--target", o.target,
                  "choose for each head the edit that visits the fewest blocks and keeps\n"
                  "output_error<=X, recall>=X or recall_p05>=X in the mean, and, after a blank,\n"
                  "worst<=Y in the worst forward (else X); -o is then the plan, a .json")
      .type_name("LIMIT");
  command
      .add_option("--among", o.among,
                  "choose among these as well: names stand for the budgets that people try\n"
                  "(sol,vsa,topk), texts as of --edit for themselves; dense always is among them")
      .delimiter(',')
      .type_name("NAMES");
  command.add_option("--per", o.per, "whose heads share an edit: head, layer, model or step")
      .words(std::vector<std::string>{"head", "layer", "model", "step"})
      .type_name("SCOPE");
  command
      .add_option("--hold-out", o.hold_out,
                  "do not look at N forwards (step, branch, batch item) of each head while\n"
                  "choosing, and tell what the choice keeps of them")
      .in_range(0, 1 << 20)
      .type_name("N");
  command
      .add_option("--plan", o.plan,
                  "measure every head under the edit that a plan of --target has for it")
      .type_name("FILE.json");
  command
      .add_option("--config", o.configs,
                  "write the plan as a kernel reads it (repeatable): sta=FILE, sparge=FILE,\n"
                  "vllm-omni=FILE or lightx2v=FILE; a line tells what a format cannot say")
      .one_value_each()
      .type_name("FORMAT=FILE");
  command
      .add_option("--config-fact", o.config_facts,
                  "what a plan does not say (repeatable): steps=N, layers=N, heads=N, slot=NAME,\n"
                  "tile=TxHxW of sta's kernel (6x8x8), modules=PATH with {layer} in it (sparge)")
      .one_value_each()
      .type_name("NAME=VALUE");
}

}  // namespace

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
  command
      .add_option("-o", o.out,
                  "write the table as .csv or .json (with --target the plan); -: print it as CSV")
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
  add_choice_options(command, o);
  add_head_run_options(command, o);
  command.add_flag("--resume", o.resume, "go on with what an interrupted run left of FILE");
  add_output_options(command, o,
                     {.dry_run = "print what it would take; compute no scores",
                      .force = "replace files that exist",
                      .json = "print the table as JSON"});
}

}  // namespace attnscope
