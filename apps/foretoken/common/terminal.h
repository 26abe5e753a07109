#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/request.h"

namespace foretoken {

bool IsTerminal(std::FILE* stream);
/// What `--color` says, "always", "never" or "auto": on a terminal where NO_COLOR is not set.
bool UseColor(std::string_view choice, std::FILE* stream);

/// Text for people. Without colour it is as it was.
class Painter {
 public:
  explicit Painter(bool color) : color_(color) {}

  /// A token's text in the colour of where it came from.
  std::string Paint(TokenOrigin origin, std::string_view text) const;
  /// A line that names these colours; nothing without colour.
  std::string Legend() const;
  std::string Bold(std::string_view text) const { return Styled("\x1b[1m", text); }
  std::string Dim(std::string_view text) const { return Styled("\x1b[2m", text); }

 private:
  std::string Styled(std::string_view code, std::string_view text) const;

  bool color_;
};

/// Rows of cells in aligned columns: the first column to the left, the others to the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Every line indented by `indent` spaces and ended by a newline; a rule below the header.
  std::string Render(int indent = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Characters of valid UTF-8 text: the width of what this program prints in tables.
std::size_t DisplayWidth(std::string_view text);

/// A bar on standard error that is drawn again in place, at most some ten times a second; nothing
/// where standard error is not a terminal. Erased when destroyed.
class ProgressBar {
 public:
  /// `total` 0: how much is to do is unknown; only the label is shown.
  ProgressBar(std::string label, std::int64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Advance(std::int64_t by = 1);
  /// As far as that, of a total that is known only now.
  void Show(std::size_t done, std::size_t total);
  void SetLabel(std::string label);

 private:
  void Draw();

  std::string label_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  std::int64_t drawn_ns_ = 0;
  bool enabled_;
};

/// About three significant digits, without trailing noise: "0.0123", "1.23", "45.6", "1234".
std::string FormatNumber(double value);
/// "3.2 MB", "812 bytes": powers of ten, three digits.
std::string FormatBytes(double bytes);
/// "1,234.5" is never needed: "5.23M", "134.5M", "8.03B".
std::string FormatCount(double count);
/// "38.4%"; "-" for a negative value, which stands for "no data".
std::string FormatPercent(double share);
/// Three digits and a unit from nanoseconds: "812 ns", "3.41 us", "12.0 ms", "1.25 s".
std::string FormatDuration(double nanoseconds);

/// Prints "foretoken: MESSAGE" on standard error, as one line that ends in a full stop or not as
/// the message does.
void PrintError(std::string_view message);
void PrintWarning(std::string_view message);

}  // namespace foretoken
