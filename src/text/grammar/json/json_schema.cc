#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "foretoken/json_schema.h"

#include "json/json.h"

#include "base/result.h"
#include "json/json_events.h"
#include "text/grammar/json/json_grammar.h"
#include "text/grammar/json/schema_document.h"
#include "text/grammar/json/schema_writer.h"

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

// Refuses a JSON text with more brackets open at once than `depth` or an object of more than
// `members` members: parsed into Json, it would take long, since members that
// are kept in order are searched from front to back. A text that is no JSON passes.
Status CheckJsonSize(std::string_view text, int depth, int members) {
  SizeCheck check(depth, members);
  ReadJsonEvents(text, &check);
  if (check.complaint().empty()) return {};
  return InvalidInput(check.complaint());
}

constexpr int kMaxJsonDepth = 100;  // Brackets within brackets, enumerated values included.
constexpr int kMaxMembers = 1000;   // The most members of an object.

}  // namespace

std::string JsonObjectGrammar() {
  JsonGrammar grammar;
  const int root = grammar.AddRule();
  grammar.SetBody(root, grammar.Rule(JsonGrammar::kObject, Spelling::kAny));
  return *std::move(grammar).Write(root);
}

Result<std::string> JsonSchemaGrammar(std::string_view schema) {
  if (schema.size() > kMaxGrammarBytes) {
    return Invalid("the schema has {} bytes; at most {} are allowed", schema.size(),
                   kMaxGrammarBytes);
  }
  try {
    FT_RETURN_IF_ERROR(CheckJsonSize(schema, kMaxJsonDepth, kMaxMembers));
    std::string wrong;
    const Json parsed = Json::Parse(schema, &wrong);
    if (parsed.is_discarded()) {
      return Invalid("the schema is not valid JSON: {}", wrong);
    }
    return SchemaWriter(parsed).Write();
  } catch (const SchemaRefusal& refusal) {
    return InvalidInput(refusal.message);
  }
}

}  // namespace foretoken
