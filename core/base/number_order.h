#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// The order that `--sort NAME` asks for: rows by one of their numbers, the largest first.
struct NumberOrder {
  std::string name;  ///< empty: as they come
  bool ascending = false;

  /// Reads NAME, or NAME:asc for the smallest first; nothing of an empty text. Throws Error(usage)
  /// with all names, and the nearest one, where it is none of them.
  static NumberOrder parse(std::string_view sort, std::span<const std::string> names);

  /// Rows without the number come last, equal ones stay in their order. `number_of` gives a row's
  /// number, an optional<double>.
  template <typename Row, typename NumberOf>
  void sort(std::vector<Row>& rows, const NumberOf& number_of) const {
    if (name.empty()) return;
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
      return is_before(number_of(a), number_of(b));
    });
  }

 private:
  bool is_before(std::optional<double> a, std::optional<double> b) const;
};

}  // namespace attnscope
