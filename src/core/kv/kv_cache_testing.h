#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/integers.h"
#include "core/kv/kv_cache.h"

namespace foretoken {

/// For tests and fuzzing: drives a `KvCache` and, beside it, a naive model that knows no blocks,
/// only which prefixes are published, who holds them and since when nobody does; and the same of
/// their recent parts. Every slot remembers the whole prefix it was computed for, so that KV shared
/// wrongly is always seen.
class KvCacheHarness {
 public:
  /// Returns a number in [0, bound).
  using Choose = std::function<std::uint32_t(std::uint32_t bound)>;

  KvCacheHarness(const KvRoom& room, bool prefix_cache, BlockHash hash)
      : room_(room),
        prefix_cache_(prefix_cache),
        cache_(room, prefix_cache, hash),
        computed_for_(room.blocks * kBlockSize, 0),
        recent_for_(room.recent_parts * kBlockSize, 0),
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
        case 2:
          if (choose(3) == 0) {
            Withdraw(&live);
          } else {
            wrong = Round(choose, &live);
          }
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
    std::size_t first_recent = 0;
  };
  /// What is referred to or kept of a prefix's last block, or of that block's recent part.
  struct Kept {
    int holders = 0;
    std::int64_t idle_since = 0;
    bool there = false;
  };
  struct Published {
    Kept block;
    Kept recent;
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

  bool windowed() const { return room_.window > 0; }
  std::size_t FirstSeen(std::size_t committed) const {
    const std::size_t seen = (Size(room_.window) + kBlockSize - 2) / kBlockSize;
    if (!windowed()) return 0;
    return std::max(Anchored(), committed / kBlockSize - std::min(seen, committed / kBlockSize));
  }
  std::size_t Anchored() const { return BlocksFor(Size(room_.anchors)); }
  /// Whether a sequence refers to the recent part of a block of its own.
  bool HoldsRecent(const Live& live, std::size_t index) const {
    return windowed() && (index < Anchored() || index >= live.first_recent);
  }

  std::int64_t Private() const {
    std::int64_t count = 0;
    for (const Live& live : live_) count += std::int64_t(live.blocks - live.published);
    return count;
  }
  std::int64_t PrivateParts() const {
    std::int64_t count = 0;
    for (const Live& live : live_) {
      for (std::size_t i = live.published; i < live.blocks; ++i) count += HoldsRecent(live, i);
    }
    return count;
  }
  std::int64_t Count(Kept Published::*kept, bool idle) const {
    return std::ranges::count_if(published_, [kept, idle](const auto& entry) {
      const Kept& part = entry.second.*kept;
      return part.there && (!idle || part.holders == 0);
    });
  }
  std::int64_t Idle() const { return Count(&Published::block, /*idle=*/true); }
  std::int64_t Free() const { return room_.blocks - std::int64_t(published_.size()) - Private(); }
  std::int64_t IdleParts() const { return Count(&Published::recent, /*idle=*/true); }
  std::int64_t FreeParts() const {
    return room_.recent_parts - Count(&Published::recent, /*idle=*/false) - PrivateParts();
  }

  static void Hold(Kept* kept) {
    kept->there = true;
    ++kept->holders;
  }
  void LetGo(Kept* kept) {
    if (--kept->holders == 0) kept->idle_since = ++clock_;
  }
  Published& EntryOf(const Live& live, std::size_t index) {
    return published_[FirstBlocks(live.tokens, index + 1)];
  }

  std::string Start(const Choose& choose, Live* live) {
    live->active = true;
    AppendTokens(choose, choose(6 * kBlockSize), &live->tokens);
    const std::int32_t found = cache_.MatchPrefix(live->tokens, &live->kv);
    HoldPrefix(live);
    live->blocks = live->published;
    const std::size_t expected = live->published * kBlockSize;
    if (std::size_t(found) != expected) {
      return fmt::format("MatchPrefix found {} tokens instead of {}", found, expected);
    }
    return Compute(live);
  }

  /// Takes what of the prefix is there, with the recent parts that the next row sees.
  void HoldPrefix(Live* live) {
    std::size_t usable = 0;
    for (std::size_t n = 1; n * kBlockSize < live->tokens.size(); ++n) {
      if (!published_.contains(FirstBlocks(live->tokens, n))) break;
      bool seen = true;
      for (std::size_t i = 0; windowed() && i < n; ++i) {
        const bool needed = i < Anchored() || i >= FirstSeen(n * kBlockSize);
        seen = seen && (!needed || EntryOf(*live, i).recent.there);
      }
      if (seen) usable = n;
    }
    live->published = usable;
    live->first_recent = FirstSeen(usable * kBlockSize);
    for (std::size_t i = 0; i < usable; ++i) {
      Hold(&EntryOf(*live, i).block);
      if (HoldsRecent(*live, i)) Hold(&EntryOf(*live, i).recent);
    }
  }

  void DropPassed(Live* live) {
    const std::size_t first = FirstSeen(live->kv.committed);
    for (; live->first_recent < first; ++live->first_recent) {
      const std::size_t block = live->first_recent;
      if (block >= Anchored() && block < live->published) LetGo(&EntryOf(*live, block).recent);
    }
  }

  /// Reserves and "computes" everything up to the end of `tokens`, then commits it.
  std::string Compute(Live* live) {
    const std::size_t wanted = BlocksFor(live->tokens.size());
    const std::size_t more = wanted > live->blocks ? wanted - live->blocks : 0;
    const bool expected = std::int64_t(more) <= Free() + Idle() &&
                          (!windowed() || std::int64_t(more) <= PartsAfterDropping(*live));
    if (cache_.Available() != Free() + Idle()) return "Available differs from the model";
    const auto length = static_cast<std::int32_t>(live->tokens.size());
    if (cache_.Reserve(length, &live->kv) != expected) {
      return fmt::format("Reserve({}) did not return {}", length, expected);
    }
    DropPassed(live);
    if (!expected) {
      live->tokens.resize(live->kv.committed);
      return "";
    }
    for (; live->blocks < wanted; ++live->blocks) {
      if (Free() == 0) published_.erase(Oldest(&Published::block));
      if (windowed() && FreeParts() == 0) Oldest(&Published::recent)->second.recent.there = false;
    }
    std::uint64_t id = 0;
    for (std::int32_t p = 0; p < length; ++p) {
      id = IdOf(id, live->tokens[p]);
      if (p < live->kv.committed) continue;
      computed_for_[live->kv.SlotOf(p)] = id;
      if (windowed()) recent_for_[RecentSlot(*live, p)] = id;
    }
    live->kv.committed = length;
    return "";
  }

  /// Parts that a reservation could have, which begins with giving back those that are passed.
  std::int64_t PartsAfterDropping(const Live& live) {
    std::int64_t passed = 0;
    for (std::size_t i = std::max(live.first_recent, Anchored()); i < FirstSeen(live.kv.committed);
         ++i) {
      if (i >= live.published || EntryOf(live, i).recent.holders == 1) ++passed;
    }
    return FreeParts() + IdleParts() + passed;
  }

  std::size_t RecentSlot(const Live& live, std::int32_t position) const {
    const std::int32_t slot = live.kv.SlotOf(position);
    const std::int32_t place = cache_.recent_places()[slot / kBlockSize];
    return Size(place) * kBlockSize + slot % kBlockSize;
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
      Published& entry = EntryOf(*live, live->published);
      Hold(&entry.block);
      if (HoldsRecent(*live, live->published)) Hold(&entry.recent);
    }
    DropPassed(live);
  }

  void Truncate(const Choose& choose, Live* live) {
    const std::size_t length = choose(static_cast<std::uint32_t>(live->tokens.size()) + 1);
    const std::size_t kept = ShortenTo(length, live);
    cache_.Truncate(static_cast<std::int32_t>(length), &live->kv);
    live->tokens.resize(kept);
  }

  /// What nobody holds or goes on from is published no longer.
  void Withdraw(Live* live) {
    const Live before = *live;
    ShortenTo(0, live);
    cache_.Withdraw(&live->kv);
    for (std::size_t blocks = before.published; blocks > 0; --blocks) {
      const auto own = published_.find(FirstBlocks(before.tokens, blocks));
      const auto next = std::next(own);
      const bool goes_on = next != published_.end() && next->first.size() > own->first.size() &&
                           std::equal(own->first.begin(), own->first.end(), next->first.begin());
      if (own->second.block.holders == 0 && !goes_on) published_.erase(own);
    }
    *live = {};
  }

  /// Returns the length that is left.
  std::size_t ShortenTo(std::size_t length, Live* live) {
    if (length < live->published * kBlockSize) length -= length % kBlockSize;
    if (FirstSeen(std::min<std::size_t>(length, live->kv.committed)) < live->first_recent) {
      length = 0;
    }
    while (live->published * kBlockSize > length) {
      Published& entry = EntryOf(*live, --live->published);
      LetGo(&entry.block);
      if (HoldsRecent(*live, live->published)) LetGo(&entry.recent);
      --live->blocks;
    }
    live->blocks = std::max(live->published, std::min(live->blocks, BlocksFor(length)));
    live->first_recent =
        std::min(live->first_recent, FirstSeen(std::min<std::size_t>(length, live->kv.committed)));
    return length;
  }

  std::map<Prefix, Published>::iterator Oldest(Kept Published::*kept) {
    auto oldest = published_.end();
    for (auto it = published_.begin(); it != published_.end(); ++it) {
      const Kept& part = it->second.*kept;
      if (!part.there || part.holders > 0) continue;
      if (oldest == published_.end() || part.idle_since < (oldest->second.*kept).idle_since) {
        oldest = it;
      }
    }
    return oldest;
  }

  /// Numbers prefixes: `before`, the number of one, continued by `token`.
  std::uint64_t IdOf(std::uint64_t before, Token token) {
    return ids_.try_emplace({before, token}, ids_.size() + 1).first->second;
  }

  static std::string Compare(const KvUsage& usage, std::int64_t total, std::int64_t free,
                             std::int64_t idle) {
    if (usage.free + usage.cached + usage.used != usage.total) return "states do not add up";
    if (usage.total == total && usage.free == free && usage.cached == idle) return "";
    return fmt::format("{} free and {} cached of {} instead of {} and {} of {}", usage.free,
                       usage.cached, usage.total, free, idle, total);
  }

  std::string Check() {
    const Status status = cache_.CheckIntegrity();
    if (!status.ok()) return status.error().message;
    std::string wrong = Compare(cache_.Usage(), room_.blocks, Free(), Idle());
    if (wrong.empty() && windowed()) {
      wrong = Compare(cache_.RecentUsage(), room_.recent_parts, FreeParts(), IdleParts());
    }
    if (!wrong.empty()) return wrong;
    for (const Live& live : live_) {
      const auto length = static_cast<std::int32_t>(live.tokens.size());
      if (live.kv.committed != length || live.kv.blocks.size() != live.blocks ||
          std::size_t(live.kv.published_blocks) != live.published ||
          std::size_t(live.kv.first_recent) != live.first_recent) {
        return "a sequence differs from the model";
      }
      const std::int32_t seen = std::max(0, length - room_.window + 1);
      std::uint64_t id = 0;
      for (std::int32_t p = 0; p < length; ++p) {
        id = IdOf(id, live.tokens[p]);
        if (computed_for_[live.kv.SlotOf(p)] != id) {
          return fmt::format("the slot of position {} holds the KV of another prefix", p);
        }
        const bool is_seen = windowed() && (p >= seen || p < room_.anchors);
        if (is_seen && recent_for_.at(RecentSlot(live, p)) != id) {
          return fmt::format("the recent part of position {} is another prefix's", p);
        }
      }
    }
    return "";
  }

  KvRoom room_;
  bool prefix_cache_;
  KvCache cache_;
  std::vector<std::uint64_t> computed_for_;
  std::vector<std::uint64_t> recent_for_;
  std::vector<Live> live_;
  std::map<Prefix, Published> published_;
  std::map<std::pair<std::uint64_t, Token>, std::uint64_t> ids_;
  std::int64_t clock_ = 0;
};

}  // namespace foretoken
