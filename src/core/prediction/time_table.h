#pragma once

#include <array>
#include <span>

#include "base/result.h"
#include "base/static_vector.h"

namespace foretoken {

/// The time of a model's pass by its rows and the context they attend to: measured on a grid,
/// linear between the points, continued beyond the last one with the slope of the upper half (never
/// downwards) and constant below the first. A value of fixed size; copying is cheap enough for
/// every re-plan.
class TimeTable {
 public:
  static constexpr int kMaxRowPoints = 20;
  static constexpr int kMaxContextPoints = 8;

  /// Takes no time.
  TimeTable() = default;

  /// `us[i * contexts.size() + j]`: microseconds at rows[i] and contexts[j]; both ascend. Refuses
  /// grids that are empty, too large or out of order, and times that are not positive and finite.
  static Result<TimeTable> Make(std::span<const int> rows, std::span<const int> contexts,
                                std::span<const double> us);
  /// base_us + per_row_us * rows at every context.
  static TimeTable Line(double base_us, double per_row_us);

  /// Microseconds; means of rows and contexts need not be whole.
  double us(double rows, double context) const;
  /// The same with every row count's times multiplied by its factor.
  TimeTable Scaled(std::span<const double> by_rows) const;

  const StaticVector<int, kMaxRowPoints>& rows() const { return rows_; }
  const StaticVector<int, kMaxContextPoints>& contexts() const { return contexts_; }
  /// As Make was given them.
  std::span<const double> times() const {
    return std::span(us_).first(rows_.size() * contexts_.size());
  }

 private:
  StaticVector<int, kMaxRowPoints> rows_;
  StaticVector<int, kMaxContextPoints> contexts_;
  std::array<double, std::size_t{kMaxRowPoints} * kMaxContextPoints> us_{};  // [rows, contexts]
};

}  // namespace foretoken
