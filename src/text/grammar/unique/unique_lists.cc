#include "text/grammar/unique/unique_lists.h"

#include <functional>
#include <map>

#include "base/check.h"

namespace foretoken {
namespace {

// The name in "name":value.
std::string NameOf(const std::string& member) {
  std::size_t end = 1;
  while (end < member.size() && member[end] != '"') end += member[end] == '\\' ? 2 : 1;
  return member.substr(0, end);
}

// A JSON value, in which there are no spaces, with the members of its objects sorted. Of members of
// one name the last counts.
std::string Sorted(std::string_view value) {
  struct Open {
    std::size_t begin;                           // Behind the bracket.
    std::map<std::string, std::string> members;  // The members of an object, by name.
  };
  std::string sorted;
  std::vector<Open> open;
  bool in_string = false;
  const auto end_member = [&] {
    std::string member = sorted.substr(open.back().begin);
    sorted.resize(open.back().begin);
    if (!member.empty()) open.back().members[NameOf(member)] = std::move(member);
  };
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '"') in_string = !in_string;
    const bool in_object = !open.empty() && sorted[open.back().begin - 1] == '{';
    if (in_string) {
      sorted += c;
      if (c == '\\' && i + 1 < value.size()) sorted += value[++i];
    } else if (in_object && c == ',') {
      end_member();
    } else if (in_object && c == '}') {
      end_member();
      for (const auto& [name, member] : open.back().members) sorted += member + ',';
      sorted += c;
      open.pop_back();
    } else {
      sorted += c;
      if (c == '{' || c == '[') open.push_back({sorted.size(), {}});
      if (c == ']' && !open.empty()) open.pop_back();
    }
  }
  return sorted;
}

// Two texts are the same item where this is the same.
std::string KeyOf(std::string_view item) {
  return item.find('{') == std::string_view::npos ? std::string(item) : Sorted(item);
}

}  // namespace

bool UniqueLists::Push(std::uint8_t byte, bool begins) {
  if (!open() && !begins) return true;
  const char c = static_cast<char>(byte);
  if (in_string_) {
    text_ += c;
    const bool ends = c == '"' && !escaped_;
    escaped_ = c == '\\' && !escaped_;
    in_string_ = !ends;
    return !ends || open_.back().object || EndItem();
  }
  switch (c) {
    case ' ':
    case '\n':
    case '\r':
    case '\t':
      return EndNumber();
    case '[':
    case '{':
      text_ += c;
      open_.push_back({.list = lists_++,
                       .object = c == '{',
                       .unique = begins,
                       .begin = static_cast<std::uint32_t>(text_.size())});
      return true;
    case ',': {
      if (!EndNumber()) return false;
      text_ += c;
      Level& list = ChangeTop();
      list.begin = static_cast<std::uint32_t>(text_.size());
      list.complete = false;
      return true;
    }
    case ']':
    case '}':
      if (!EndNumber()) return false;
      text_ += c;
      ChangeTop();
      open_.pop_back();
      return !open() || open_.back().object || EndItem();
    default:
      in_string_ = c == '"';
      text_ += c;
      return true;
  }
}

UniqueLists::Level& UniqueLists::ChangeTop() {
  changes_.push_back({open_.size(), open_.back()});
  return open_.back();
}

// Numbers, and words like true, end where something else begins.
bool UniqueLists::EndNumber() {
  const Level& list = open_.back();
  return list.object || list.complete || Now(list).empty() || EndItem();
}

bool UniqueLists::EndItem() {
  Level& list = ChangeTop();
  list.complete = true;
  if (!list.unique) return true;
  const std::string_view text = Now(list);
  const std::string key = KeyOf(text);
  const std::uint64_t hash = std::hash<std::string>()(key);
  comparisons_ += std::ssize(items_);
  for (const Item& item : items_) {
    if (item.list == list.list && item.hash == hash && KeyOf(TextOf(item)) == key) return false;
  }
  items_.push_back({list.list, list.begin, static_cast<std::uint32_t>(text.size()), hash});
  return true;
}

// Calls `visit` with how each item that begins like one at hand goes on, until it returns false.
template <typename Visit>
void UniqueLists::VisitAlike(Visit visit) const {
  for (auto list = open_.rbegin(); list != open_.rend(); ++list) {
    if (!list->unique || list->complete) continue;
    const std::string_view now = Now(*list);
    comparisons_ += std::ssize(items_);
    for (const Item& item : items_) {
      const std::string_view text = TextOf(item);
      if (item.list != list->list || !text.starts_with(now)) continue;
      if (!visit(text.substr(now.size()))) return;
    }
  }
}

bool UniqueLists::MayRepeat() const {
  bool found = false;
  VisitAlike([&](std::string_view) {
    found = true;
    return false;
  });
  return found;
}

std::vector<std::string_view> UniqueLists::Continuations() const {
  std::vector<std::string_view> found;
  VisitAlike([&](std::string_view rest) {
    found.push_back(rest);
    return true;
  });
  return found;
}

UniqueLists::Mark UniqueLists::mark() const {
  return {.text = text_.size(),
          .depth = open_.size(),
          .changes = changes_.size(),
          .items = items_.size(),
          .lists = lists_,
          .in_string = in_string_,
          .escaped = escaped_};
}

void UniqueLists::Return(const Mark& mark) {
  FT_CHECK(mark.text <= text_.size() && mark.changes <= changes_.size());
  for (; changes_.size() > mark.changes; changes_.pop_back()) {
    open_.resize(changes_.back().depth);
    open_.back() = changes_.back().before;
  }
  open_.resize(mark.depth);
  text_.resize(mark.text);
  items_.resize(mark.items);
  lists_ = mark.lists;
  in_string_ = mark.in_string;
  escaped_ = mark.escaped;
}

void UniqueLists::Settle() {
  changes_.clear();
  if (open()) return;
  text_.clear();
  items_.clear();
}

bool Matches(std::string_view text, StateGraph* graph) {
  StateGraph::State state = graph->start();
  UniqueLists lists;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    const StateGraph::Transition taken = graph->Follow(state, byte);
    if (!lists.Push(byte, taken.begins_unique)) return false;
    state = taken.to;
  }
  return graph->MayEnd(state);
}

}  // namespace foretoken
