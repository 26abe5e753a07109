#include "core/draft/model/draw.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "base/numbers/philox.h"

namespace foretoken {
namespace {

// E[(p - q)+] / p for a draft that says the probability is p and draws with q = `ratio` * p: the
// true one scatters about what the draft says. 1 / (1 + s * ratio) is within a few hundredths of
// the expectation for a log-normal scatter of one nat.
double ResidualShare(double ratio) { return 1 / (1 + 1.6 * ratio); }

}  // namespace

void DraftDraw::AddNoise(const RankRequest& request,
                         std::span<const TokenProbability> distribution) {
  const std::uint64_t position = request.root + request.path.size() + 1;
  for (std::size_t i = 0; i < scored_.size(); ++i) {
    Scored& scored = scored_[i];
    // After a rejection the bonus comes from what the distribution drawn from leaves of the
    // target's.
    if (request.children > 0) {
      scored.score *= ResidualShare(distribution[i].probability / scored.score);
    }
    const std::uint32_t draw = PhiloxDraw(
        request.seed, position, static_cast<std::uint32_t>(scored.token), NoisePurpose::kSampling);
    scored.score /= -std::log(UnitInterval(draw));
  }
}

DrawnTokens DraftDraw::Draw(const RankRequest& request, std::span<TokenProbability> likeliest) {
  scored_.clear();
  if (request.candidates > 0) {
    for (const TokenProbability& entry : likeliest) {
      scored_.push_back({entry.token, entry.probability});
    }
  }
  DrawnTokens tokens;
  if (request.children > 0) ApplySaguaro(likeliest, request.fanout, request.saguaro_c);
  for (int i = 0; i < request.children; ++i) {
    const Token token =
        DrawToken(likeliest, tokens, DraftUniform(request.seed, request.root, request.path, i));
    if (token < 0) break;
    tokens.push_back(token);
  }
  if (request.order == CacheOrder::kNoise) AddNoise(request, likeliest);
  const std::size_t drawn = tokens.size();
  std::erase_if(scored_, [&](const Scored& scored) {
    return std::find(tokens.begin(), tokens.begin() + drawn, scored.token) !=
           tokens.begin() + drawn;
  });
  const std::size_t kept = std::min(scored_.size(), Size(request.candidates));
  FT_CHECK(drawn + kept <= kMaxRanking);
  std::partial_sort(scored_.begin(), scored_.begin() + kept, scored_.end(),
                    [](const Scored& a, const Scored& b) {
                      return a.score > b.score || (a.score == b.score && a.token < b.token);
                    });
  for (std::size_t i = 0; i < kept; ++i) tokens.push_back(scored_[i].token);
  return tokens;
}

}  // namespace foretoken
