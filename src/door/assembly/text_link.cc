#include "door/assembly/text_link.h"

#include <utility>

#include "text/tokenizer/pair/text_pair.h"

namespace foretoken {
namespace {

class PairedText final : public DraftText {
 public:
  explicit PairedText(std::shared_ptr<const TextPair> pair) : pair_(std::move(pair)) {}

  void Read(std::span<const Token> tokens) override { text_.Read(*pair_, tokens); }
  std::span<const Token> tokens() const override { return text_.draft_text().tokens(); }
  std::size_t settled() const override { return text_.draft_text().settled(); }
  std::vector<Token> TargetTokensOf(std::span<const Token> tokens,
                                    std::span<const Token> said) const override {
    return foretoken::TargetTokensOf(*pair_, text_, tokens, said);
  }

 private:
  std::shared_ptr<const TextPair> pair_;
  TextOfTarget text_;
};

class PairLink final : public TextLink {
 public:
  explicit PairLink(std::shared_ptr<const TextPair> pair) : pair_(std::move(pair)) {}

  std::unique_ptr<DraftText> NewText() const override {
    return std::make_unique<PairedText>(pair_);
  }

 private:
  std::shared_ptr<const TextPair> pair_;
};

}  // namespace

std::shared_ptr<const TextLink> LinkByText(std::shared_ptr<const Tokenizer> target,
                                           std::shared_ptr<const Tokenizer> draft) {
  return std::make_shared<PairLink>(MakeTextPair(std::move(target), std::move(draft)));
}

}  // namespace foretoken
