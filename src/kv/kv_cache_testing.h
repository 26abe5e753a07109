#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv_cache.h"

namespace foretoken {

/// For tests and fuzzing: drives a `KvCache` and, beside it, a naive model that knows no blocks,
/// only which prefixes are published, who holds them and since when nobody does. Every slot
/// remembers the whole prefix it was computed for, so that KV shared wrongly is always seen.
class KvCacheHarness {
 public:
  /// Returns a number in [0, bound).
  using Choose = std::function<std::uint32_t(std::uint32_t bound)>;

  KvCacheHarness(std::int64_t blocks, bool prefix_cache, BlockHash hash)
      : total_(blocks),
        prefix_cache_(prefix_cache),
        cache_(blocks, prefix_cache, hash),
        computed_for_(blocks * kBlockSize, 0),
        live_(kSequences) {}

  /// Does one random operation; the first contradiction, or "".
  std::string Step(const Choose& choose) {
    Live& live = live_[choose(kSequences)];
    std::string wrong;
    if (!live.active) {
      wrong = Start(choose, &live);
    } else {
      switch (choose(8)) {
        case 0:
          ShortenTo(0, &live);
          cache_.Release(&live.kv);
          live = {};
          break;
        case 1:
          Truncate(choose, &live);
          break;
        default:
          wrong = Round(choose, &live);
      }
    }
    return wrong.empty() ? Check() : wrong;
  }

 private:
  static constexpr std::uint32_t kSequences = 5;

  struct Live {
    bool active = false;
    std::vector<Token> tokens;
    SequenceKv kv;
    std::size_t blocks = 0;
    std::size_t published = 0;
  };
  struct Published {
    int holders = 0;
    std::int64_t idle_since = 0;
  };
  using Prefix = std::vector<Token>;

  static Prefix FirstBlocks(const std::vector<Token>& tokens, std::size_t blocks) {
    return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(blocks * kBlockSize)};
  }
  static std::size_t BlocksFor(std::size_t length) {
    return (length + kBlockSize - 1) / kBlockSize;
  }

  /// Few distinct runs of tokens, so that prefixes often agree and then part.
  static void AppendTokens(const Choose& choose, std::size_t count, std::vector<Token>* tokens) {
    while (count > 0) {
      const auto token = static_cast<Token>(choose(2));
      const std::size_t run =
          std::min<std::size_t>(count, kBlockSize - tokens->size() % kBlockSize);
      tokens->insert(tokens->end(), run, token);
      count -= run;
    }
  }

  std::int64_t Private() const {
    std::int64_t count = 0;
    for (const Live& live : live_) count += std::int64_t(live.blocks - live.published);
    return count;
  }
  std::int64_t Idle() const {
    return std::ranges::count_if(published_, [](const auto& p) { return p.second.holders == 0; });
  }
  std::int64_t Free() const { return total_ - std::int64_t(published_.size()) - Private(); }

  std::string Start(const Choose& choose, Live* live) {
    live->active = true;
    AppendTokens(choose, choose(6 * kBlockSize), &live->tokens);
    const std::int32_t found = cache_.MatchPrefix(live->tokens, &live->kv);
    while ((live->published + 1) * kBlockSize < live->tokens.size()) {
      const auto next = published_.find(FirstBlocks(live->tokens, live->published + 1));
      if (next == published_.end()) break;
      ++next->second.holders;
      ++live->published;
    }
    live->blocks = live->published;
    const std::size_t expected = live->published * kBlockSize;
    if (std::size_t(found) != expected) {
      return fmt::format("MatchPrefix found {} tokens instead of {}", found, expected);
    }
    return Compute(live);
  }

  /// Reserves and "computes" everything up to the end of `tokens`, then commits it.
  std::string Compute(Live* live) {
    const std::size_t wanted = BlocksFor(live->tokens.size());
    const std::size_t more = wanted > live->blocks ? wanted - live->blocks : 0;
    const bool expected = std::int64_t(more) <= Free() + Idle();
    if (cache_.Available() != Free() + Idle()) return "Available differs from the model";
    const auto length = static_cast<std::int32_t>(live->tokens.size());
    if (cache_.Reserve(length, &live->kv) != expected) {
      return fmt::format("Reserve({}) did not return {}", length, expected);
    }
    if (!expected) {
      live->tokens.resize(live->kv.committed);
      return "";
    }
    for (; live->blocks < wanted; ++live->blocks) {
      if (Free() == 0) ForgetOldest();
    }
    std::uint64_t id = 0;
    for (std::int32_t p = 0; p < length; ++p) {
      id = IdOf(id, live->tokens[p]);
      if (p >= live->kv.committed) computed_for_[live->kv.SlotOf(p)] = id;
    }
    live->kv.committed = length;
    return "";
  }

  std::string Round(const Choose& choose, Live* live) {
    const std::size_t before = live->tokens.size();
    const std::size_t proposed = 1 + choose(2 * kBlockSize);
    const std::size_t accepted = choose(static_cast<std::uint32_t>(proposed) + 1);
    AppendTokens(choose, proposed, &live->tokens);
    std::string wrong = Compute(live);
    if (!wrong.empty() || live->tokens.size() <= before) return wrong;
    live->tokens.resize(before + accepted);
    ShortenTo(live->tokens.size(), live);
    cache_.Truncate(static_cast<std::int32_t>(live->tokens.size()), &live->kv);
    if (prefix_cache_ && choose(2) == 0) PublishAll(live);
    return "";
  }

  void PublishAll(Live* live) {
    cache_.Publish(live->tokens, &live->kv);
    for (; (live->published + 1) * kBlockSize <= live->tokens.size(); ++live->published) {
      ++published_[FirstBlocks(live->tokens, live->published + 1)].holders;
    }
  }

  void Truncate(const Choose& choose, Live* live) {
    const std::size_t length = choose(static_cast<std::uint32_t>(live->tokens.size()) + 1);
    const std::size_t kept = ShortenTo(length, live);
    cache_.Truncate(static_cast<std::int32_t>(length), &live->kv);
    live->tokens.resize(kept);
  }

  /// Returns the length that is left.
  std::size_t ShortenTo(std::size_t length, Live* live) {
    if (length < live->published * kBlockSize) length -= length % kBlockSize;
    while (live->published * kBlockSize > length) {
      Published& entry = published_[FirstBlocks(live->tokens, live->published)];
      if (--entry.holders == 0) entry.idle_since = ++clock_;
      --live->published;
      --live->blocks;
    }
    live->blocks = std::max(live->published, std::min(live->blocks, BlocksFor(length)));
    return length;
  }

  void ForgetOldest() {
    auto oldest = published_.end();
    for (auto it = published_.begin(); it != published_.end(); ++it) {
      if (it->second.holders > 0) continue;
      if (oldest == published_.end() || it->second.idle_since < oldest->second.idle_since) {
        oldest = it;
      }
    }
    published_.erase(oldest);
  }

  /// Numbers prefixes: `before`, the number of one, continued by `token`.
  std::uint64_t IdOf(std::uint64_t before, Token token) {
    return ids_.try_emplace({before, token}, ids_.size() + 1).first->second;
  }

  std::string Check() {
    const Status status = cache_.CheckIntegrity();
    if (!status.ok()) return status.error().message;
    const KvUsage usage = cache_.Usage();
    if (usage.free + usage.cached + usage.used != usage.total) return "states do not add up";
    if (usage.total != total_ || usage.free != Free() || usage.cached != Idle()) {
      return fmt::format("{} free and {} cached of {} instead of {} and {} of {}", usage.free,
                         usage.cached, usage.total, Free(), Idle(), total_);
    }
    for (const Live& live : live_) {
      const auto length = static_cast<std::int32_t>(live.tokens.size());
      if (live.kv.committed != length || live.kv.blocks.size() != live.blocks ||
          std::size_t(live.kv.published_blocks) != live.published) {
        return "a sequence differs from the model";
      }
      std::uint64_t id = 0;
      for (std::int32_t p = 0; p < length; ++p) {
        id = IdOf(id, live.tokens[p]);
        if (computed_for_[live.kv.SlotOf(p)] != id) {
          return fmt::format("the slot of position {} holds the KV of another prefix", p);
        }
      }
    }
    return "";
  }

  std::int64_t total_;
  bool prefix_cache_;
  KvCache cache_;
  std::vector<std::uint64_t> computed_for_;
  std::vector<Live> live_;
  std::map<Prefix, Published> published_;
  std::map<std::pair<std::uint64_t, Token>, std::uint64_t> ids_;
  std::int64_t clock_ = 0;
};

}  // namespace foretoken
