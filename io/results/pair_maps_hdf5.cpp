#include "io/results/pair_maps_hdf5.h"

#include <numeric>
#include <optional>

#include "core/problem/model_place.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {
struct PairMapsFile::Impl {
  struct PairDataset {
    std::string name;
    std::vector<int64_t> shape;
    Hdf5Dataset dataset;
  };
  std::optional<Hdf5Writer> writer;
  std::vector<Hdf5Dataset> scales;  ///< of the pairs, then of the axes
  std::vector<PairDataset> variables;

  Hdf5Dataset write_scale(const PairAxis& axis) const {
    const auto extent = std::ssize(axis.numbers);
    Hdf5Dataset scale = writer->write<int32_t>(
        writer->root(), axis.name, std::span<const int32_t>(axis.numbers), {&extent, 1});
    writer->make_scale(scale, axis.name, extent);
    writer->attribute(scale.id(), "long_name", axis.long_name);
    if (axis.words.empty()) return scale;
    const Hdf5Dataset words =
        writer->write_strings(writer->root(), axis.name + "_name", axis.words, {&extent, 1});
    const Hdf5Dataset* const of[] = {&scale};
    writer->attach_scales(words, of);
    return scale;
  }

  void write_column(const TableColumn& column, int64_t pairs) const {
    const Hdf5Dataset dataset =
        column.has_words()
            ? writer->write_strings(writer->root(), column.name, column.words, {&pairs, 1})
            : writer->write<double>(writer->root(), column.name,
                                    std::span<const double>(column.numbers), {&pairs, 1});
    const Hdf5Dataset* const of[] = {&scales.front()};
    writer->attach_scales(dataset, of);
  }

  void create(const PairVariable& variable, const std::vector<PairAxis>& axes, int64_t pairs) {
    std::vector<int64_t> shape{pairs};
    std::vector<const Hdf5Dataset*> of{&scales.front()};
    for (const size_t axis : variable.axes) {
      shape.push_back(std::ssize(axes[axis].numbers));
      of.push_back(&scales[axis + 1]);
    }
    Hdf5Dataset dataset =
        writer->create_dataset(writer->root(), variable.name, Hdf5Writer::file_type<float>(), shape,
                               Hdf5Storage::contiguous);
    writer->attribute(dataset.id(), "long_name", variable.long_name);
    writer->attribute(dataset.id(), "units", "1");
    writer->attach_scales(dataset, of);
    variables.push_back({variable.name, shape, std::move(dataset)});
  }

  void create_all(const PairMapsLayout& layout) {
    for (const auto& [name, text] : layout.texts) writer->attribute(writer->root(), name, text);
    for (const auto& [name, number] : layout.numbers) {
      writer->attribute(writer->root(), name, number);
    }
    const std::string unrecorded = unrecorded_columns(layout.pairs);
    if (!unrecorded.empty()) writer->attribute(writer->root(), kNotRecordedName, unrecorded);
    const TableColumn& first = layout.pairs.front();
    const auto pairs =
        static_cast<int64_t>(first.has_words() ? first.words.size() : first.numbers.size());
    PairAxis places{"pair", "two heads that are compared", {}};
    places.numbers.resize(static_cast<size_t>(pairs));
    std::iota(places.numbers.begin(), places.numbers.end(), 0);
    scales.push_back(write_scale(places));
    for (const PairAxis& axis : layout.axes) scales.push_back(write_scale(axis));
    for (const TableColumn& column : layout.pairs) write_column(column, pairs);
    for (const PairVariable& variable : layout.variables) create(variable, layout.axes, pairs);
  }
  /// Ends what the library holds of the file.
  void drop() {
    variables.clear();
    scales.clear();
    writer.reset();
  }
};

PairMapsFile::PairMapsFile(const PairMapsLayout& layout, const std::filesystem::path& path)
    : impl_(std::make_unique<Impl>()) {
  const Hdf5Session session;
  try {
    impl_->writer.emplace(path);
    impl_->create_all(layout);
  } catch (...) {
    // While the session lives.
    impl_->drop();
    throw;
  }
}

PairMapsFile::~PairMapsFile() {
  const Hdf5Session session;
  impl_->drop();
}

void PairMapsFile::write(size_t variable, int64_t pair, std::span<const float> values) {
  const Hdf5Session session;
  const Impl::PairDataset& to = impl_->variables[variable];
  impl_->writer->write_item<float>(to.dataset, pair, values, to.shape, to.name);
}

void PairMapsFile::close() {
  const Hdf5Session session;
  impl_->variables.clear();
  impl_->scales.clear();
  impl_->writer->close();
}

}  // namespace attnscope
