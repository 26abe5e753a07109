#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace foretoken {

/// A sample to be taken.
struct SampleToDo {
  int prompt = 0;  ///< Which, from 0.
  int sample = 0;  ///< Which of the prompt's, from 0.
};

/// Which sample begins next, so that a batch stays full to the end and prompts are computed once.
///
/// Those whose siblings became longest come first: of what begins last, little then runs alone.
/// Prompts of which nothing is known count as the average of what has finished and come in order.
/// While the first sample of a prompt computes it, its siblings stay behind: they find it in the
/// prefix cache then. Not thread-safe.
class SampleQueue {
 public:
  SampleQueue(int prompts, int samples);

  /// Already there, of so many tokens; before the first Next.
  void Skip(SampleToDo sample, int tokens);

  /// Nothing where none is left, or those that are must wait for a prompt.
  std::optional<SampleToDo> Next();
  /// The prompt's first sample has computed it.
  void Computed(int prompt);
  /// A sample of the prompt has finished.
  void Finished(int prompt, int tokens);

  /// Samples that have not begun.
  std::int64_t left() const { return left_; }

 private:
  struct Prompt {
    std::vector<int> left;  // Samples, the next one last.
    std::int64_t tokens = 0;
    std::int64_t finished = 0;
    bool begun = false;
    bool waits = false;  // Is being computed.
    double Mean() const { return static_cast<double>(tokens) / static_cast<double>(finished); }
  };

  // Whether Next may choose it; the sets below have it then, and only then.
  bool MayBegin(const Prompt& prompt) const { return !prompt.left.empty() && !prompt.waits; }
  void Enter(int index);
  void Leave(int index);
  int Choose() const;

  std::vector<Prompt> prompts_;
  std::set<std::pair<double, int>> known_;  // By expected length, negated: the longest first.
  std::set<int> unknown_;                   // Nothing of them has finished.
  std::int64_t left_ = 0;
  std::int64_t tokens_ = 0;  // The tokens of all that have finished.
  std::int64_t finished_ = 0;
};

}  // namespace foretoken
