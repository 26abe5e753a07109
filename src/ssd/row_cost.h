#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace foretoken {

/// What a draft pass costs, learned while drafting: time = base + per_row * rows, fitted to recent
/// passes with decay. Where rows are nearly free (AMX, GPUs) every branch advances in every pass;
/// where they are not, only those that are worth their time.
class RowCost {
 public:
  /// A pass over `rows` rows took `ns` nanoseconds.
  void Add(int rows, std::int64_t ns);

  /// Given the values of candidate rows in descending order and `fixed` rows that are computed in
  /// any case, how many candidates to take: the number with the most value per unit of time.
  std::size_t Choose(std::span<const double> values, int fixed) const;

  double base_ns() const { return base_; }
  double per_row_ns() const { return per_row_; }

 private:
  double weight_ = 0;
  double sum_rows_ = 0;
  double sum_ns_ = 0;
  double sum_rows_rows_ = 0;
  double sum_rows_ns_ = 0;
  double base_ = 1;
  double per_row_ = 0;
};

}  // namespace foretoken
