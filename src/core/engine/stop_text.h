#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

/// Finds stop strings in text that comes in pieces, and holds back the end of the text as long as
/// it may still become one.
class StopText {
 public:
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// Adds a piece. Appends to `out` what is now certain to be shown; returns true when a stop
  /// string is complete, everything from its first byte on being dropped.
  bool Push(std::string_view piece, std::string* out);

  /// Appends what is still held back: the text ends here.
  void Flush(std::string* out);

  /// Which stop string is complete; -1: none yet.
  int found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  int found_ = -1;
};

}  // namespace foretoken
