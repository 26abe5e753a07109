#include "core/engine/stop_text.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace foretoken {

bool StopText::Push(std::string_view piece, std::string* out) {
  if (stops_.empty()) {
    out->append(piece);
    return false;
  }
  held_.append(piece);
  std::size_t found = std::string::npos;
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const std::size_t at = held_.find(stops_[i]);
    if (at >= found) continue;
    found = at;
    found_ = Int(i);
  }
  if (found != std::string::npos) {
    out->append(held_, 0, found);
    held_.clear();
    return true;
  }
  std::size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length) {
      if (held_.compare(held_.size() - length, length, stop, 0, length) == 0) keep = length;
    }
  }
  out->append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopText::Flush(std::string* out) {
  out->append(held_);
  held_.clear();
}

}  // namespace foretoken
