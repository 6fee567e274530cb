#include "io/helper/questions/helper_questions.h"

#include "io/export/format/export_manifest.h"
#include "io/export/format/list_lengths.h"
#include "io/export/read/part_file.h"
#include "io/export/read/stored_blocks.h"
#include "io/export/read/stored_facts.h"
#include "io/export/read/stored_shards.h"
#include "io/metrics/metric_file.h"
#include "io/plan_parts/part_volumes.h"
#include "io/tensors/hdf5_structure.h"

namespace attnscope {

std::span<const HelperQuestion* const> helper_questions() {
  static constexpr const HelperQuestion* kQuestions[] = {
      &kHdf5StructureQuestion, &kHdf5AttributesQuestion, &kHdf5ChunksQuestion,
      &kManifestQuestion,      &kFactsQuestion,          &kCallFactsQuestion,
      &kShardQuestion,         &kBlocksQuestion,         &kPartQuestion,
      &kVolumesQuestion,       &kMetricsQuestion,        &kListLengthsQuestion};
  return kQuestions;
}

}  // namespace attnscope
