#include "text/grammar/automaton/automaton.h"

#include <algorithm>
#include <string_view>

#include "text/grammar/automaton/code_points.h"
#include "text/grammar/automaton/rule_analysis.h"
#include "text/grammar/automaton/simplify.h"
#include "text/grammar/automaton/writable.h"

namespace foretoken {

using Op = Instruction::Op;
using Kind = Expression::Kind;

/// Emits programs back to front: each part is compiled knowing where it goes on.
class ProgramBuilder {
 public:
  ProgramBuilder(const Grammar& grammar, const RuleAnalysis& analysis, int horizon,
                 Automaton* automaton)
      : grammar_(grammar), analysis_(analysis), horizon_(horizon), automaton_(automaton) {}

  Status Build() {
    Emit({.op = Op::kEnd});
    Emit({.op = Op::kHole});
    Emit({.op = Op::kReturn});
    automaton_->entries_.assign(grammar_.rules.size(), -1);
    for (const int rule : analysis_.call_order) {
      automaton_->entries_[rule] = Compile(grammar_.rules[rule].body, Automaton::kReturn);
      if (!full_) continue;
      return Invalid(
          "grammar: it is too large: with repetitions written out, more than {} instructions at "
          "rule '{}'",
          Automaton::kMaxInstructions, grammar_.rules[rule].name);
    }
    return {};
  }

 private:
  ProgramCounter size() const { return static_cast<ProgramCounter>(automaton_->program_.size()); }

  ProgramCounter Emit(Instruction instruction) {
    if (automaton_->program_.size() >= Automaton::kMaxInstructions) {
      full_ = true;  // Nothing is right from here on; Build says so.
      return Automaton::kReturn;
    }
    automaton_->program_.push_back(instruction);
    automaton_->twins_.push_back(size() - 1);
    automaton_->run_of_.push_back(-1);
    return size() - 1;
  }

  ProgramCounter Bytes(ByteRange range, ProgramCounter next) {
    return Emit({.op = Op::kBytes, .first = range.first, .last = range.last, .next = next});
  }

  /// The entry of `expression`, which goes on at `next`.
  ProgramCounter Compile(const Expression& expression, ProgramCounter next) {
    if (full_) return next;
    switch (expression.kind) {
      case Kind::kLiteral:
        return CompileText(expression.literal, next);
      case Kind::kClass:
        return CompileClass(expression, next);
      case Kind::kBeginUnique:
        automaton_->has_unique_ = true;
        return Emit({.op = Op::kBytes,
                     .first = '[',
                     .last = '[',
                     .next = next,
                     .operand = Instruction::kBeginsUnique});
      case Kind::kRule:
        if (analysis_.expandable[expression.rule]) {
          return Compile(grammar_.rules[expression.rule].body, next);
        }
        return Emit({.op = Op::kCall, .next = next, .operand = expression.rule});
      case Kind::kSequence:
        for (auto part = expression.parts.rbegin(); part != expression.parts.rend(); ++part) {
          next = Compile(*part, next);
        }
        return next;
      case Kind::kChoice:
        return CompileChoice(expression, next);
      case Kind::kRepeat:
        return CompileRepeat(expression, next);
    }
    return next;
  }

  ProgramCounter CompileClass(const Expression& expression, ProgramCounter next) {
    std::vector<ByteSequence> sequences;
    for (const CodeRange& range : expression.ranges) {
      std::ranges::copy_if(Utf8Sequences(range), std::back_inserter(sequences),
                           [this](const ByteSequence& sequence) {
                             return HasWritable(sequence, automaton_->writable_);
                           });
    }
    return CompileSequences(sequences, 0, next, size());
  }

  /// One of `sequences`, ascending and alike up to `depth`, from there on. Ranges at one place are
  /// the same or have no byte in common, so a text is in one place at once: classes have hundreds.
  ProgramCounter CompileSequences(std::span<const ByteSequence> sequences, std::size_t depth,
                                  ProgramCounter next, ProgramCounter begin) {
    ProgramCounter entry = -1;
    while (!sequences.empty() && !full_) {
      const ByteRange range = sequences.front()[depth];
      const auto end = std::ranges::find_if(sequences, [&](const ByteSequence& sequence) {
        return sequence[depth].first != range.first;
      });
      const std::size_t alike = end - sequences.begin();
      const bool last = depth + 1 == sequences.front().size();
      const ProgramCounter at =
          last ? next : CompileSequences(sequences.first(alike), depth + 1, next, begin);
      for (const ByteRange writable : WritableRanges(range, automaton_->writable_)) {
        entry = Either(entry, SharedBytes(writable, at, begin));
      }
      sequences = sequences.subspan(alike);
    }
    return entry;
  }

  /// Characters of a class end in the same continuation bytes: those are emitted once.
  ProgramCounter SharedBytes(ByteRange range, ProgramCounter next, ProgramCounter begin) {
    for (ProgramCounter at = std::max(begin, size() - 16); at < size(); ++at) {
      const Instruction& known = automaton_->program_[at];
      if (known.op == Op::kBytes && known.first == range.first && known.last == range.last &&
          known.next == next) {
        return at;
      }
    }
    return Bytes(range, next);
  }

  // Goes on at `entry`, unless that is -1, or at `at`.
  ProgramCounter Either(ProgramCounter entry, ProgramCounter at) {
    return entry < 0 ? at : Emit({.op = Op::kSplit, .next = at, .operand = entry});
  }

  ProgramCounter CompileChoice(const Expression& expression, ProgramCounter next) {
    ProgramCounter entry = -1;
    std::vector<std::string_view> texts;
    for (const Expression& part : expression.parts) {
      if (part.kind == Kind::kLiteral) {
        texts.push_back(part.literal);
      } else {
        entry = Either(entry, Compile(part, next));
      }
    }
    if (texts.empty()) return entry;
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    return Either(entry, CompileTexts(texts, 0, next));
  }

  // One of `texts`, ascending and alike up to `begin`, from there on. What they begin with in
  // common is emitted once, so a text is in few places at once.
  ProgramCounter CompileTexts(std::span<const std::string_view> texts, std::size_t begin,
                              ProgramCounter next) {
    const auto [first, last] =
        std::ranges::mismatch(texts.front().substr(begin), texts.back().substr(begin));
    const std::size_t parting = first - texts.front().begin();
    const std::string_view common = texts.front().substr(begin, parting - begin);
    ProgramCounter entry = -1;
    if (texts.front().size() == parting) {
      entry = next;
      texts = texts.subspan(1);
    }
    while (!texts.empty() && !full_) {
      const char byte = texts.front()[parting];
      const auto end =
          std::ranges::find_if(texts, [&](std::string_view text) { return text[parting] != byte; });
      const std::size_t alike = end - texts.begin();
      entry = Either(entry, CompileTexts(texts.first(alike), parting, next));
      texts = texts.subspan(alike);
    }
    return CompileText(common, entry);
  }

  ProgramCounter CompileText(std::string_view text, ProgramCounter next) {
    for (auto c = text.rbegin(); c != text.rend(); ++c) {
      const auto byte = static_cast<std::uint8_t>(*c);
      next = Bytes({byte, byte}, next);
    }
    return next;
  }

  ProgramCounter CompileRepeat(const Expression& expression, ProgramCounter next) {
    const Expression& part = expression.parts[0];
    ProgramCounter at = next;
    if (expression.max == Expression::kUnbounded) {
      at = Emit({.op = Op::kSplit, .next = next, .operand = next});
      const ProgramCounter body = Compile(part, at);
      if (!full_) automaton_->program_[at].next = body;
    } else {
      at = CompileCopies(part, expression.max - expression.min, /*skip_to=*/next, at);
    }
    return CompileCopies(part, expression.min, /*skip_to=*/-1, at);
  }

  /// `copies` of `part` before `next`; each may be skipped, with all that follow, by going on at
  /// `skip_to` instead (unless -1).
  ProgramCounter CompileCopies(const Expression& part, int copies, ProgramCounter skip_to,
                               ProgramCounter next) {
    const ProgramCounter begin = size();
    const std::size_t first_run = automaton_->runs_.size();
    for (int i = 0; i < copies && !full_; ++i) {
      next = Compile(part, next);
      if (skip_to >= 0) next = Emit({.op = Op::kSplit, .next = next, .operand = skip_to});
    }
    if (skip_to >= 0 && copies > 1 && !full_) NoteRun(begin, copies, first_run);
    // A copy that takes a byte or more lets the horizon see as many copies as it has bytes. Those
    // with more ahead of them (the first is emitted last) are all alike.
    if (full_ || copies <= horizon_ + 2 || analysis_.Nullable(part)) return next;
    const ProgramCounter stride = (size() - begin) / copies;
    for (int copy = horizon_ + 2; copy < copies; ++copy) {
      const ProgramCounter shift = (copies - 1 - copy) * stride;
      for (ProgramCounter at = begin + copy * stride; at < begin + (copy + 1) * stride; ++at) {
        automaton_->twins_[at] += shift;
      }
    }
    return next;
  }

  // The instructions from `begin` on are a run of copies; it holds the runs from `first_inner` on.
  void NoteRun(ProgramCounter begin, int copies, std::size_t first_inner) {
    const int run = automaton_->runs();
    for (std::size_t inner = first_inner; inner < automaton_->runs_.size(); ++inner) {
      int& outer = automaton_->runs_[inner].outer;
      if (outer < 0) outer = run;
    }
    for (ProgramCounter at = begin; at < size(); ++at) {
      int& innermost = automaton_->run_of_[at];
      if (innermost < 0) innermost = run;
    }
    automaton_->runs_.push_back({.begin = begin, .stride = (size() - begin) / copies});
  }

  const Grammar& grammar_;
  const RuleAnalysis& analysis_;
  int horizon_;
  Automaton* automaton_;
  bool full_ = false;
};

Result<Automaton> Automaton::Compile(const Grammar& written, int horizon, const ByteSet& writable) {
  FT_ASSIGN_OR_RETURN(RuleAnalysis analysis, AnalyzeRules(written));
  Grammar grammar = written;
  if (!writable.all()) {
    if (const auto byte = KeepWritable(writable, &grammar)) {
      return Invalid(
          "the model can write no text that the grammar matches: none of its tokens stands for the "
          "byte 0x{:02X} alone; use other characters, or a model whose tokenizer knows all bytes",
          *byte);
    }
    FT_ASSIGN_OR_RETURN(analysis, AnalyzeRules(grammar));
  }
  grammar = Simplify(grammar, analysis);
  FT_ASSIGN_OR_RETURN(analysis, AnalyzeRules(grammar));
  Automaton automaton;
  automaton.writable_ = writable;
  automaton.root_ = grammar.root;
  FT_RETURN_IF_ERROR(ProgramBuilder(grammar, analysis, horizon, &automaton).Build());
  automaton.nullable_ = std::move(analysis.nullable);
  automaton.call_order_ = std::move(analysis.call_order);
  automaton.ClassifyBytes();
  return automaton;
}

void Automaton::ClassifyBytes() {
  std::array<bool, 257> boundary{};
  boundary[0] = true;
  for (const Instruction& instruction : program_) {
    if (instruction.op != Op::kBytes) continue;
    boundary[instruction.first] = true;
    boundary[instruction.last + 1] = true;
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (boundary[byte]) class_bytes_.push_back(static_cast<std::uint8_t>(byte));
    class_of_[byte] = static_cast<std::uint8_t>(class_bytes_.size() - 1);
  }
}

}  // namespace foretoken
