#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/grammar/json/json_grammar.h"
#include "text/grammar/json/schema_demands.h"
#include "text/grammar/json/schema_document.h"

namespace foretoken {

/// Writes the grammar of a schema: a rule for each goal that a value may have to reach, of which
/// the first is the schema itself. Refuses (SchemaRefusal) what is not supported.
class SchemaWriter {
 public:
  explicit SchemaWriter(const Json& root) : document_(root) {}

  Result<std::string> Write();

 private:
  // A value that reaches `goal`, in the spelling at hand.
  Expression Value(const Goal& goal);
  Expression Body(const Goal& goal);
  Expression Way(const Demands& demands);
  Expression Scalar(const Demands& demands,
                    Expression (*write)(const Demands&, Spelling, const SchemaDocument&,
                                        JsonGrammar*));
  Expression Base(JsonGrammar::Base base) const { return grammar_.Rule(base, spelling_); }
  int NewRule(Expression body);

  // Objects (object_writer.cc).
  struct Member {
    Expression text;  // "name": value
    bool required = false;
  };
  struct Members {
    std::vector<Member> named;
    Expression other;  // One with another name; matches nothing where there may be none.
    CountDemand count;
    int enough = 1;                                    // As many members as need to be told apart.
    std::map<std::pair<std::size_t, int>, int> rules;  // By next member and count so far.
  };
  Expression Object(const Demands& demands);
  Goal MemberGoal(const Demands& demands, const std::string& name);
  Expression OtherMembers(const Demands& demands, const std::vector<std::string>& names);
  Expression MembersFrom(std::size_t index, int count, Members* members);
  Expression OthersFrom(int count, Members* members);
  RegularLanguage NameLanguage(const Goal& goal);
  const RegularLanguage& PatternLanguage(const std::string& pattern, const Json& schema);

  // Arrays (array_writer.cc).
  struct Item {
    Expression text;
    int state = 0;  // After it.
  };
  struct Items {
    int fixed = 0;  // Positions that differ from those after them.
    CountDemand count;
    std::map<std::pair<int, int>, int> rules;  // By position and state.
    int depth = 0;                             // Rules that are being written.
  };
  Expression Array(const Demands& demands);
  Expression List(Expression begin, Expression items);
  Expression SomeItems(const Demands& demands, Items* items);
  Goal ItemGoal(const Demands& demands, int position);
  Expression PlainItems(const Demands& demands, const Items& items);
  template <typename Choices, typename MayEnd>
  Expression CountedItems(int position, int state, Choices choices, MayEnd may_end, Items* items);
  Expression ContainingItems(const Demands& demands, Items* items);
  using Values = std::vector<Json>;
  Expression UniqueList(const Demands& demands, Items* items);
  std::vector<std::optional<Values>> ItemValues(const Demands& demands, const Items& items);
  std::optional<Expression> FewUniqueItems(const std::vector<std::optional<Values>>& by_position,
                                           Items* items);

  SchemaDocument document_;
  JsonGrammar grammar_;
  Spelling spelling_ = Spelling::kAny;  // The spelling of what is being written.
  std::map<std::pair<Goal, Spelling>, int> rules_;
  std::map<std::string, RegularLanguage> patterns_;  // The languages of "patternProperties".
  std::map<std::string, Expression> scalars_;
  std::vector<std::pair<Goal, Spelling>> todo_;  // Whose rules are still to be written.
};

}  // namespace foretoken
