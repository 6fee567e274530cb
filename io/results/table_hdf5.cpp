#include "io/results/table_hdf5.h"

#include <numeric>

#include "core/problem/model_place.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {

std::string unrecorded_columns(const std::vector<TableColumn>& columns) {
  std::string names;
  for (const TableColumn& column : columns) {
    if (column.lacks_records) names += (names.empty() ? "" : " ") + column.name;
  }
  return names;
}

void write_table_hdf5(const std::vector<std::pair<std::string, std::string>>& attributes,
                      const std::string& dimension, const std::vector<TableColumn>& columns,
                      const std::filesystem::path& path) {
  const Hdf5Session session;
  Hdf5Writer writer(path);
  {
    for (const auto& [name, text] : attributes) writer.attribute(writer.root(), name, text);
    const std::string unrecorded = unrecorded_columns(columns);
    if (!unrecorded.empty()) writer.attribute(writer.root(), kNotRecordedName, unrecorded);
    const TableColumn& first = columns.front();
    const auto lines =
        static_cast<int64_t>(first.has_words() ? first.words.size() : first.numbers.size());
    std::vector<int32_t> places(static_cast<size_t>(lines));
    std::iota(places.begin(), places.end(), 0);
    const Hdf5Dataset scale = writer.write<int32_t>(writer.root(), dimension,
                                                    std::span<const int32_t>(places), {&lines, 1});
    writer.make_scale(scale, dimension, lines);
    const Hdf5Dataset* const scales[] = {&scale};
    for (const TableColumn& column : columns) {
      const Hdf5Dataset dataset =
          column.has_words()
              ? writer.write_strings(writer.root(), column.name, column.words, {&lines, 1})
              : writer.write<double>(writer.root(), column.name,
                                     std::span<const double>(column.numbers), {&lines, 1});
      writer.attach_scales(dataset, scales);
    }
  }
  writer.close();
}

}  // namespace attnscope
