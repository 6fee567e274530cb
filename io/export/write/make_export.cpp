#include "io/export/write/make_export.h"

#include <utility>

#include "io/export/write/export_resumption.h"
#include "io/export/write/hdf5_export.h"
#include "io/export/write/pooled_export.h"
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
                         bool in_shards, int64_t bytes) {
  OutputFile::check_target(out, in_shards ? options.for_shards() : options.for_file(bytes));
}

void check_export_target(const ExportPlan& plan, const std::filesystem::path& out,
                         const ExportWriteOptions& options) {
  const bool pooled = plan.spec.product == ExportProduct::pooled;
  check_export_target(out, options, plan.spec.is_sharded(),
                      pooled ? pooled_payload_bytes(plan) : least_export_bytes(plan.layout));
}

bool check_export_resume(const ExportPlan& plan, const std::filesystem::path& out,
                         const ExportWriteOptions& options) {
  const RunForm form = plan.spec.is_sharded()                       ? RunForm::shards
                       : plan.spec.product == ExportProduct::pooled ? RunForm::nothing
                                                                    : RunForm::tiles;
  return check_resume(out, form, make_manifest(plan.spec, plan.layout, {}), options);
}

}  // namespace attnscope
