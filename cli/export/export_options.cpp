#include "cli/export/export_options.h"

#include <charconv>

#include "cli/common/output_options.h"
#include "cli/run/shard_option.h"
#include "io/export/format/export_spec.h"

namespace attnscope {
namespace {

std::vector<std::string> product_names() {
  std::vector<std::string> names;
  for (const ExportProduct product : exported_maps()) {
    names.emplace_back(export_product_name(product));
  }
  return names;
}

/// Adds the options that choose the product, its part of the maps and its encoding.
void add_product_options(CommandParser& command, ExportOptions& o) {
  command.add_option("-o", o.out, "the HDF5 file to write").type_name("OUT.h5").required();
  command
      .add_option(
          "--product", o.product,
          "weights (default), logits, lse, rows (the default with --query), topk (with\n"
          "--topk), threshold (with --threshold), pooled (with --block) or output: softmax(QK).V\n"
          "itself, for captures with v")
      .one_of(product_names())
      .type_name("NAME");
  command
      .add_option("--dtype", o.dtype,
                  "f16 (weights x 2^14, the default), f32, or u8 (log code); logits: f32 or f16")
      .one_of({"f16", "f32", "u8"})
      .type_name("TYPE");
  command.add_option("--rows", o.rows, "crop of the query rows, half-open: 0:256").type_name("A:B");
  command.add_option("--cols", o.cols, "crop of the key columns, half-open: 226:").type_name("A:B");
  command
      .add_option("--compress", o.compress,
                  "{}: gzip makes a compressed file a call in OUT.d/, and OUT that links them")
      .one_of({"none", "gzip"})
      .type_name("NAME");
  command.add_option("--topk", o.topk, "the N largest weights of every row and their keys")
      .in_range(1, int64_t{1} << 20)
      .type_name("N");
  command
      .add_option("--threshold", o.threshold, "the weights from X on, as CSR (rows, keys, weights)")
      .check([](const std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool number = error == std::errc() && end == text.data() + text.size();
        return number && value > 0 && value <= 1 ? "" : "expected a weight above 0 and up to 1";
      })
      .type_name("X");
  command
      .add_option("--block", o.block,
                  "the largest and the mean weight of blocks of N x N (--product pooled; 64)")
      .in_range(1, int64_t{1} << 30)
      .type_name("N");
  command.add_flag("--pyramid", o.pyramid,
                   "pooled: blocks of N, 2N, 4N, ... up to one block on the shorter side");
}

/// How the file is written.
void add_write_options(CommandParser& command, ExportOptions& o) {
  command.add_flag("--sync,!--no-sync", o.sync,
                   "make every commit durable: what is reported kept survives a power loss\n"
                   "(default); --no-sync survives a killed process only");
  command
      .add_option(
          "--align", o.align,
          "weights, logits, rows: chunks stand at multiples of SIZE, a power of two of 4KiB\n"
          "to 64MiB (a parallel file system's stripe), and are as large, where maps are")
      .type_name("SIZE");
  command
      .add_option("--max-size", o.max_size,
                  "refuse a file that would be larger, before anything is written, and say which\n"
                  "--dtype fits (compressed or with --threshold: by its size at most)")
      .type_name("SIZE");
  command.add_flag("--resume", o.resume,
                   "go on with what an interrupted run left; start afresh where there is nothing");
  command.add_flag("--verify-all", o.verify_all,
                   "with --resume: read back everything that is there, not the last GiB alone");
  add_output_options(
      command, o,
      {.dry_run = "print sizes, arithmetic and plan; write nothing",
       .force = "replace OUT once the new file is complete; give up what an interrupted run\n"
                "left (with --resume: go on with it)",
       .json = "print the plan of --dry-run, or what was written, as JSON",
       .quiet = "no narration, no progress"});
}

}  // namespace

void add_export_options(CommandParser& command, ExportOptions& o) {
  add_capture_options(command, o.capture);
  add_product_options(command, o);
  add_query_options(command, o.queries, true);
  add_head_run_options(command, o);
  add_write_options(command, o);
}

}  // namespace attnscope
