#include "tests/support/head_records.h"

#include <limits>

namespace attnscope::test {

HeadRecord sample_record(int64_t head, bool sampled) {
  HeadRecord record;
  record.name = {10, 3, "cond", "joint", 0, head};
  HeadMetrics& metrics = record.metrics;
  double value = 0.1 + static_cast<double>(head);
  for (const HeadField& field : head_fields()) {
    value /= 3;
    if (const auto* mean = std::get_if<Estimate HeadMetrics::*>(&field.member)) {
      metrics.** mean = {value, sampled ? std::optional(value / 7) : std::nullopt};
    } else if (const auto* real =
                   std::get_if<std::optional<double> HeadMetrics::*>(&field.member)) {
      metrics.** real = value;
    }
  }
  metrics.band = 2;
  metrics.rows = 700;
  metrics.masked_rows = 14;
  metrics.head_class = HeadClass::temporal;
  metrics.class_scores.temporal = 0.25;
  metrics.class_scores.spatial_lift = 1.0 / 3;
  Sink video;
  video.key = 250;
  video.place = LatentCoord{1, 0, 10};
  video.mass = 0.2;
  Sink named;
  named.key = 4;
  named.text_index = 4;
  named.token = "a \"dog\",\n";
  named.mass = 0.1;
  Sink nameless;
  nameless.key = 9;
  nameless.text_index = 9;
  nameless.mass = 0.05;
  metrics.sinks = {video, named, nameless};
  const double gap = std::numeric_limits<double>::quiet_NaN();
  record.arrays = {{HeadArray::max_key_rows, {3}, {5, -1, 699}},
                   {HeadArray::frame_frame, {2, 3}, {0.5, 0.25, 0.25, gap, 1.0 / 3, 0}}};
  return record;
}

}  // namespace attnscope::test
