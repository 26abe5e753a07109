#include "text/tokenizer/pair/token_ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text/parse_number.h"
#include "base/text/printable.h"

namespace foretoken {
namespace {

constexpr std::string_view kHead = "foretoken-token-ranking 1 ";
constexpr int kMostTokens = 1 << 24;

// Takes what stands before the first `end`, which goes too; all of it where there is none.
std::string_view Take(std::string_view* text, char end) {
  const std::size_t at = text->find(end);
  const std::string_view taken = text->substr(0, at);
  text->remove_prefix(at == std::string_view::npos ? text->size() : at + 1);
  return taken;
}

Status ParseHead(std::string_view line, TokenRanking* ranking) {
  const bool named = line.starts_with(kHead);
  if (named) line.remove_prefix(kHead.size());
  ranking->tokenizer = Take(&line, ' ');
  const bool counted = ParseNumber(line, &ranking->vocabulary) && ranking->vocabulary > 0 &&
                       ranking->vocabulary <= kMostTokens;
  if (named && counted && !ranking->tokenizer.empty()) return {};
  return Invalid(
      "is no ranking of tokens, which begins '{}FINGERPRINT VOCABULARY'; `foretoken datastore "
      "rank` makes one",
      kHead);
}

}  // namespace

TokenRanking RankTokens(const Tokenizer& tokenizer, std::span<const std::uint64_t> counts) {
  TokenRanking ranking{tokenizer.fingerprint(), tokenizer.vocabulary(), {}};
  for (std::size_t token = 0; token < counts.size(); ++token) {
    if (counts[token] > 0) ranking.entries.push_back({static_cast<Token>(token), counts[token]});
  }
  std::ranges::stable_sort(ranking.entries, std::ranges::greater(), &TokenRanking::Entry::count);
  return ranking;
}

std::string FormatTokenRanking(const TokenRanking& ranking) {
  std::string text = fmt::format("{}{} {}\n", kHead, ranking.tokenizer, ranking.vocabulary);
  for (const TokenRanking::Entry& entry : ranking.entries) {
    fmt::format_to(std::back_inserter(text), "{} {}\n", entry.token, entry.count);
  }
  return text;
}

Result<TokenRanking> ParseTokenRanking(std::string_view text, std::string_view where) {
  TokenRanking ranking;
  const Status head = ParseHead(Take(&text, '\n'), &ranking);
  if (!head.ok()) return Invalid("{} {}", where, head.error().message);
  std::vector<bool> seen(ranking.vocabulary);
  for (int number = 2; !text.empty(); ++number) {
    const std::string_view line = Take(&text, '\n');
    std::string_view rest = line;
    TokenRanking::Entry entry;
    const auto refuse = [&](std::string_view why) {
      return Invalid("{} line {}: '{}' {}", where, number, Printable(line.substr(0, 40)), why);
    };
    if (!ParseNumber(Take(&rest, ' '), &entry.token) || !ParseNumber(rest, &entry.count)) {
      return refuse("is not a token's id and its count");
    }
    if (entry.token < 0 || entry.token >= ranking.vocabulary) {
      return refuse(fmt::format("is none of the tokenizer's {} tokens", ranking.vocabulary));
    }
    std::vector<bool>::reference there = seen[entry.token];
    if (there) return refuse("is a token that an earlier line has");
    if (!ranking.entries.empty() && entry.count > ranking.entries.back().count) {
      return refuse("has a higher count than the line before: the most frequent tokens go first");
    }
    there = true;
    ranking.entries.push_back(entry);
  }
  if (ranking.entries.empty()) return Invalid("{} ranks no token", where);
  return ranking;
}

Status CheckRanks(const TokenRanking& ranking, const Tokenizer& tokenizer, std::string_view where) {
  if (ranking.tokenizer == tokenizer.fingerprint()) return {};
  return Invalid(
      "{} ranks the tokens of another tokenizer ({}) than the target's ({}): make one with "
      "`foretoken datastore rank` and this target",
      where, Printable(ranking.tokenizer.substr(0, 12)), tokenizer.fingerprint().substr(0, 12));
}

}  // namespace foretoken
