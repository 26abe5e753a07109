#pragma once

// Writes the bundled draft with other tokens than the bundled target's.

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/temporary_testing.h"
#include "base/numbers/integers.h"
#include "core/model/model_testing.h"
#include "core/weights/weights_testing.h"
#include "json/json.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {

/// A folder with the bundled draft, in which token i is what is `tokens`[i] in the bundled one; -1
/// is a word that the bundled one has not.
class DraftVariant {
 public:
  static constexpr Token kAll = 2048;    ///< The bundled models' tokens.
  static constexpr Token kWords = 261;   ///< Before them lie special tokens and bytes.
  static constexpr Token kForeign = -1;  ///< A token of its own.

  explicit DraftVariant(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    WriteConfigurations();
    WriteTokenizer();
    WriteWeights();
  }

  /// All tokens, last first.
  static std::vector<Token> Reversed() {
    std::vector<Token> tokens(kAll);
    std::iota(tokens.rbegin(), tokens.rend(), 0);
    return tokens;
  }

  std::string path() const { return folder_.path().string(); }
  DraftOptions Options() const {
    DraftOptions options = BundledDraft();
    options.source.path = path();
    return options;
  }

 private:
  static std::string Read(const char* file) {
    std::ifstream stream(BundledModel("demo-draft") + "/" + file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  Token IdOf(Token bundled) const {
    return static_cast<Token>(std::ranges::find(tokens_, bundled) - tokens_.begin());
  }

  void WriteConfigurations() const {
    auto config = Json::Parse(Read("config.json"));
    config["vocab_size"] = tokens_.size();
    config["bos_token_id"] = IdOf(1);
    config["eos_token_id"] = IdOf(2);
    folder_.Write("config.json", config.dump());
    const Json generation = {{"bos_token_id", IdOf(1)}, {"eos_token_id", {IdOf(2), IdOf(4)}}};
    folder_.Write("generation_config.json", generation.dump());
    folder_.Write("tokenizer_config.json", Read("tokenizer_config.json"));
  }

  // A SentencePiece model is a list of fields, of which the pieces are number 1: each a tag, a
  // length and so many bytes.
  void WriteTokenizer() const {
    const std::string file = Read("tokenizer.model");
    std::vector<std::string> pieces;
    std::string rest;
    for (std::size_t at = 0; at < file.size();) {
      std::size_t end = at + 1;
      std::size_t length = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(file[end++]);
        length |= Size(byte & 0x7FU) << shift;
        if (byte < 0x80) break;
      }
      const std::string field = file.substr(at, end + length - at);
      if (field[0] == '\x0A') {
        pieces.push_back(field);
      } else {
        rest += field;
      }
      at = end + length;
    }
    std::string out;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      out += tokens_[i] == kForeign ? ForeignPiece(i) : pieces.at(Size(tokens_[i]));
    }
    folder_.Write("tokenizer.model", out + rest);
  }

  static std::string ForeignPiece(std::size_t id) {
    const std::string spelling = "qxq" + std::to_string(id);
    std::string piece = {'\x0A', static_cast<char>(spelling.size())};
    piece += spelling;
    piece += std::string("\x15\x00\x40\x9C\xC5", 5);  // A score of -5000.
    return std::string{'\x0A', static_cast<char>(piece.size())} + piece;
  }

  void WriteWeights() const {
    const std::string file = Read("model.safetensors");
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof(length));
    const auto header = Json::Parse(file.substr(8, length));
    Json changed;
    std::string data;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const std::array<std::size_t, 2> place = entry["data_offsets"];
      std::string bytes = file.substr(8 + length + place[0], place[1] - place[0]);
      Json shape = entry["shape"];
      if (name == "model.embed_tokens.weight") {
        const std::string all = std::exchange(bytes, "");
        const std::size_t row = all.size() / kAll;
        for (const Token token : tokens_) {
          // Foreign words seem likely to the model.
          bytes += all.substr(row * Size(token == kForeign ? 300 : token), row);
        }
        shape[0] = tokens_.size();
      }
      changed[name] = {{"dtype", entry["dtype"]},
                       {"shape", shape},
                       {"data_offsets", {data.size(), data.size() + bytes.size()}}};
      data += bytes;
    }
    folder_.Write("model.safetensors", FrameSafetensors(changed.dump(), data));
  }

  std::vector<Token> tokens_;
  TemporaryFolder folder_;
};

/// A draft model of the bundled one's weights whose tokens are in reverse order.
inline const DraftVariant& ReversedVariant() {
  static const DraftVariant variant(DraftVariant::Reversed());
  return variant;
}

inline constexpr StopRules kVariantStop{.max_tokens = 64};

/// What the stories' prompts are continued by.
inline std::vector<std::vector<Token>> GeneratedStories(Mode mode, const EngineConfig& options,
                                                        const DraftOptions& draft,
                                                        const SamplingParams& sampling) {
  return TokensOf(Generate(*Make(mode, options, draft), StoryPrompts(), sampling, kVariantStop));
}

/// The logits of all positions of the first story's prompt.
inline std::vector<float> StoryLogits(const LoadedModel& loaded) {
  const std::vector<Token> prompt = StoryPrompts()[0];
  SequenceRunner runner(loaded.model.get(), Int(prompt.size()));
  const float* logits = runner.Append(prompt);
  return {logits, logits + prompt.size() * DraftVariant::kAll};
}

}  // namespace foretoken
