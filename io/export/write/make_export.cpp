#include "io/export/write/make_export.h"

#include <utility>

#include "io/export/write/hdf5_export.h"
#include "io/export/write/sharded_export.h"

namespace attnscope {

std::unique_ptr<ExportSink> make_export(ExportPlan plan, std::filesystem::path out,
                                        const ExportWriteOptions& options) {
  if (plan.spec.is_sharded()) {
    return make_sharded_export(std::move(plan), std::move(out), options);
  }
  return make_hdf5_export(std::move(plan), std::move(out), options);
}

void check_export_target(const std::filesystem::path& out, const ExportWriteOptions& options,
                         bool in_shards) {
  OutputFile::check_target(out, in_shards ? options.for_shards() : options.for_file(0));
}

}  // namespace attnscope
