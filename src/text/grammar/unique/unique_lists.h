#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/automaton/state_graph.h"

namespace foretoken {

/// The JSON lists whose items must all differ and that are open at the end of a text, with their
/// items so far. Items are compared as texts, without the spaces outside of strings and with the
/// members of objects in any order: that they are values that differ is for the grammar to see to,
/// by letting each value be written in one way only.
///
/// A value: copying it forks it.
class UniqueLists {
 public:
  /// The text goes on with `byte`, which `begins` such a list. False where the list's last item is
  /// there twice: the text is then of no use. Outside of such lists nothing is looked at.
  bool Push(std::uint8_t byte, bool begins);

  bool open() const { return !open_.empty(); }
  bool in_string() const { return in_string_; }
  /// How often two items were compared so far, here and in what this is a copy of.
  std::int64_t comparisons() const { return comparisons_; }

  /// Whether an item may still become one that is there: one begins with what it is so far.
  bool MayRepeat() const;
  /// How those that begin like that go on.
  std::vector<std::string_view> Continuations() const;

  /// Where a text stands, to come back to after it went on. Settle ends all marks: there is no way
  /// back from then on.
  struct Mark;
  Mark mark() const;
  void Return(const Mark& mark);
  void Settle();

 private:
  struct Level {   // A list or an object.
    int list = 0;  // Its number.
    bool object = false;
    bool unique = false;
    bool complete = false;    // The item at hand is.
    std::uint32_t begin = 0;  // Where the item at hand begins in text_.
  };
  struct Item {
    int list = 0;
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
    std::uint64_t hash = 0;
  };

  struct Change {
    std::size_t depth = 0;
    Level before;
  };

  Level& ChangeTop();
  bool EndNumber();
  bool EndItem();
  std::string_view Now(const Level& level) const {
    return std::string_view(text_).substr(level.begin);
  }
  std::string_view TextOf(const Item& item) const {
    return std::string_view(text_).substr(item.begin, item.size);
  }
  template <typename Visit>
  void VisitAlike(Visit visit) const;

  std::string text_;         // Since the outermost list began, without spaces outside of strings.
  std::vector<Level> open_;  // The innermost last.
  std::vector<Change> changes_;  // The changes of open_, for Return.
  std::vector<Item> items_;
  int lists_ = 0;  // Begun so far.
  mutable std::int64_t comparisons_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

struct UniqueLists::Mark {
  std::size_t text = 0;
  std::size_t depth = 0;
  std::size_t changes = 0;
  std::size_t items = 0;
  int lists = 0;
  bool in_string = false;
  bool escaped = false;
};

/// Whether the whole of `text` is one that the grammar of `graph` lets through, its lists included.
bool Matches(std::string_view text, StateGraph* graph);

}  // namespace foretoken
