#include "text/grammar/json/json_size.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "json/json_events.h"

namespace foretoken {
namespace {

class SizeCheck : public JsonEvents {
 public:
  SizeCheck(std::size_t depth, int members) : max_depth_(depth), max_members_(members) {}

  const std::string& complaint() const { return complaint_; }

  bool BeginObject() override { return Open(); }
  bool EndObject() override { return Close(); }
  bool BeginArray() override { return Open(); }
  bool EndArray() override { return Close(); }
  bool Name(std::string) override {
    if (++members_.back() > max_members_) {
      complaint_ = fmt::format("an object of the schema has more than {} members", max_members_);
    }
    return complaint_.empty();
  }

 private:
  bool Open() {
    members_.push_back(0);
    if (members_.size() > max_depth_) complaint_ = "the schema is nested too deep";
    return complaint_.empty();
  }
  bool Close() {
    members_.pop_back();
    return true;
  }

  const std::size_t max_depth_;
  const int max_members_;
  std::vector<int> members_;  // How many members each open bracket has.
  std::string complaint_;
};

}  // namespace

Status CheckJsonSize(std::string_view text, int depth, int members) {
  SizeCheck check(static_cast<std::size_t>(depth), members);
  ReadJsonEvents(text, &check);
  if (check.complaint().empty()) return {};
  return InvalidInput(check.complaint());
}

}  // namespace foretoken
