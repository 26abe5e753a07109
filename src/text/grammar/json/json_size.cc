#include "text/grammar/json/json_size.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "json/accepting_sax.h"

namespace foretoken {
namespace {

class SizeCheck : public AcceptingSax {
 public:
  SizeCheck(std::size_t depth, int members) : max_depth_(depth), max_members_(members) {}

  const std::string& complaint() const { return complaint_; }

  bool start_object(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool key(string_t&) override {
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
  nlohmann::json::sax_parse(text, &check);
  if (check.complaint().empty()) return {};
  return InvalidInput(check.complaint());
}

}  // namespace foretoken
