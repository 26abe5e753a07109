#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "text/grammar/automaton/byte_set.h"
#include "text/grammar/grammar.h"

namespace foretoken {

/// Where a rule's program stands: an index into the instructions.
using ProgramCounter = std::int32_t;

/// One step of a program. Programs are nondeterministic: a split goes both ways.
struct Instruction {
  enum class Op : std::uint8_t {
    kBytes,   ///< Takes one byte from `first` to `last`, goes on at `next`.
    kCall,    ///< Matches rule `operand`, goes on at `next`.
    kSplit,   ///< Goes on at `next` and at `operand`.
    kReturn,  ///< The rule ends here.
    kEnd,     ///< The whole text may end here.
    kHole,    ///< What comes after is left open.
  };
  Op op = Op::kReturn;
  std::uint8_t first = 0;
  std::uint8_t last = 0;
  ProgramCounter next = -1;
  std::int32_t operand = -1;  ///< For kBytes kBeginsUnique or nothing.

  /// The byte begins a JSON list whose items all differ.
  static constexpr std::int32_t kBeginsUnique = 1;
};

/// A grammar compiled to a byte-level pushdown automaton: a program per rule, over the bytes of
/// UTF-8. Rules that match a few bytes at most are expanded in place. Immutable.
class Automaton {
 public:
  static constexpr ProgramCounter kEnd = 0;
  static constexpr ProgramCounter kHole = 1;
  static constexpr ProgramCounter kReturn = 2;
  static constexpr std::size_t kMaxInstructions = 1 << 19;

  /// Refuses, in one sentence that names the rule: left recursion, rules that can never be matched
  /// to their end, and grammars that are too large when expanded. Twins are to be alike for the
  /// next `horizon` bytes. Texts with a byte that is not `writable` are left out, so that from
  /// wherever the automaton may be writable bytes lead on to an end; refused where none is left.
  static Result<Automaton> Compile(const Grammar& grammar, int horizon,
                                   const ByteSet& writable = AllBytes());

  const Instruction& at(ProgramCounter counter) const { return program_[counter]; }
  std::size_t size() const { return program_.size(); }
  int rules() const { return entries_.size(); }
  int root() const { return root_; }
  /// Whether there are lists whose items all differ.
  bool has_unique() const { return has_unique_; }
  /// -1 where the root never calls the rule.
  ProgramCounter entry(int rule) const { return entries_[rule]; }
  /// Whether the rule matches the empty text.
  bool nullable(int rule) const { return nullable_[rule]; }
  /// The rules that the root uses, each before those that it may call before taking a byte.
  std::span<const int> call_order() const { return call_order_; }

  /// Among the copies that a counted repetition is expanded to, one that cannot be told from
  /// `counter` within the horizon; `counter` itself outside of long repetitions.
  ProgramCounter Twin(ProgramCounter counter) const { return twins_[counter]; }

  /// Copies of one part, one after the other: each may be skipped with all behind it. The copy with
  /// the most ahead of it has the highest counters.
  struct Run {
    ProgramCounter begin = 0;
    int stride = 0;  ///< Instructions of a copy.
    int outer = -1;  ///< The run of which a copy holds this one; -1: none.
  };
  int runs() const { return runs_.size(); }
  const Run& run(int index) const { return runs_[index]; }
  /// The innermost run around an instruction; -1: none.
  int RunOf(ProgramCounter counter) const { return run_of_[counter]; }

  /// Bytes of one class are alike to every instruction.
  int ClassOf(std::uint8_t byte) const { return class_of_[byte]; }
  int classes() const { return class_bytes_.size(); }
  /// The first byte of a class.
  std::uint8_t ByteOfClass(int byte_class) const { return class_bytes_[byte_class]; }
  /// The bytes that its texts may have.
  const ByteSet& writable() const { return writable_; }

 private:
  friend class ProgramBuilder;
  void ClassifyBytes();

  std::vector<Instruction> program_;
  std::vector<ProgramCounter> twins_;
  std::vector<Run> runs_;
  std::vector<int> run_of_;
  std::vector<ProgramCounter> entries_;
  std::vector<bool> nullable_;
  std::vector<int> call_order_;
  int root_ = 0;
  bool has_unique_ = false;
  std::array<std::uint8_t, 256> class_of_{};
  ByteSet writable_;
  std::vector<std::uint8_t> class_bytes_;
};

}  // namespace foretoken
