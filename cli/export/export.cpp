#include "cli/common/command.h"
#include "cli/export/export_options.h"
#include "cli/export/export_run.h"

namespace attnscope {

Command add_export_command(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  ExportOptions& o = *options;
  CommandParser command(app, "export", "stream attention maps to an HDF5 file");
  add_export_options(command, o);
  command.footer(
      "Examples:\n"
      "  attnscope export dump/ -o maps.h5 --layers 12 --heads 0-3\n"
      "  attnscope export dump/ -o text.h5 --cols 0:226 --dtype f32\n"
      "  attnscope export dump/ -o row.h5 --query 6,15,22\n"
      "  attnscope export dump/ -o out.h5 --product output --layers 12\n"
      "  attnscope export dump/ -o part-{shard}.h5 --shard 3/16   # then: attnscope merge\n"
      "  attnscope export --q q.npy --k k.npy --grid 13x30x45 --text 226@start -o maps.h5");
  return {command, [options] { return run_export(*options); }};
}

}  // namespace attnscope
