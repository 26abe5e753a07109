#include "planner/retrieval_worth.h"

namespace foretoken {
namespace {

// Of sequences' rounds: the last few hundred, and of rounds the last hundred.
constexpr double kKeep = 0.997;
constexpr double kKeepRound = 0.99;
constexpr double kPriorAnswers = 48;
// Where asking does not pay it is done in one round of so many.
constexpr int kRoundsBetween = 24;

}  // namespace

bool RetrievalWorth::AskNow() {
  if (!Pays() && ++rounds_without_ < kRoundsBetween) return false;
  rounds_without_ = 0;
  return true;
}

void RetrievalWorth::ObserveAsking(double us) {
  asked_ = kKeep * asked_ + 1;
  asking_us_ = kKeep * asking_us_ + us;
}

void RetrievalWorth::ObserveAnswer(double tokens) {
  answers_ = kKeep * answers_ + 1;
  answer_tokens_ = kKeep * answer_tokens_ + tokens;
}

void RetrievalWorth::ObserveRound(int sequences, double tokens, double us) {
  rounds_ = kKeepRound * rounds_ + sequences;
  tokens_ = kKeepRound * tokens_ + tokens;
  us_ = kKeepRound * us_ + us;
}

bool RetrievalWorth::Pays() const {
  if (asked_ == 0 || us_ == 0) return true;
  const double tokens = (kPriorAnswers * prior_ + answer_tokens_) / (kPriorAnswers + answers_);
  return tokens >= asking_us_ / asked_ * (tokens_ / us_);
}

}  // namespace foretoken
