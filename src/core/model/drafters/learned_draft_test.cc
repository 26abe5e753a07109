#include "core/model/drafters/learned_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "core/model/families/read_config.h"
#include "core/model/golden_testing.h"
#include "core/model/open_checkpoint.h"
#include "json/json.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

std::filesystem::path LearnedFolder() { return GoldenFolder() / "drafters"; }

constexpr int kDrafted = 80;

// A golden drafter's folder, changed in memory.
class LearnedDraftTest : public testing::Test {
 protected:
  using ChangeConfig = std::function<void(Json&)>;
  using ChangeFolder = std::function<void(Checkpoint&)>;

  static Checkpoint Open(const std::string& name) {
    return Checkpoint::Open(LearnedFolder() / name).value();
  }

  Result<LearnedDraft> Read(Checkpoint folder) {
    return ReadLearnedDraft(std::move(folder), target_, target_config_);
  }
  Result<LearnedDraft> WithConfig(const std::string& name, const ChangeConfig& change) {
    Checkpoint folder = Open(name);
    Json json = Json::Parse(folder.config.json);
    change(json);
    folder.config.json = json.dump();
    return Read(std::move(folder));
  }
  Result<LearnedDraft> WithFolder(const std::string& name, const ChangeFolder& change) {
    Checkpoint folder = Open(name);
    change(folder);
    return Read(std::move(folder));
  }

  static std::string Message(const Result<LearnedDraft>& draft) {
    return draft.ok() ? "no error" : draft.error().message;
  }

  Checkpoint target_ = OpenCheckpoint(LearnedFolder() / "target", "").value();
  ModelConfig target_config_ = *ReadModelConfig(target_);
};

TEST_F(LearnedDraftTest, IsToldFromAModel) {
  EXPECT_TRUE(IsLearnedDraft(Open("eagle1")));
  EXPECT_TRUE(IsLearnedDraft(Open("eagle3")));
  EXPECT_TRUE(IsLearnedDraft(Open("eagle3-speculators")));
  EXPECT_FALSE(IsLearnedDraft(Open("target")));
  EXPECT_THAT(Message(OpenDraft(LearnedFolder() / "target", target_, target_config_)),
              HasSubstr("target: is no drafter that reads its target's states"));
}

TEST_F(LearnedDraftTest, OfAGgufFileSaysWhatTheFolderSays) {
  const std::string file = "eagle3-gguf/drafter.gguf";
  EXPECT_TRUE(IsLearnedDraft(Open(file)));
  const auto draft = Read(Open(file));
  ASSERT_TRUE(draft.ok()) << Message(draft);
  EXPECT_TRUE(draft->notes.empty());  // The file says which layers it reads.
  const auto of_folder = Read(Open("eagle3"));
  EXPECT_EQ(draft->config.feature, of_folder->config.feature);
  EXPECT_EQ(draft->config.layers, of_folder->config.layers);
  EXPECT_EQ(draft->translation->said, of_folder->translation->said);

  EXPECT_THAT(
      Message(WithFolder(file,
                         [](Checkpoint& each) { each.gguf->Add("eagle3.norm_before_fc", true); })),
      HasSubstr("drafter.gguf: eagle3.norm_before_fc is true, and what that changes is not"));
  EXPECT_THAT(Message(WithFolder(file, [](Checkpoint& each) { each.others.erase("d2t"); })),
              HasSubstr("output.weight"));
  EXPECT_THAT(Message(WithFolder(
                  file, [](Checkpoint& each) { each.tensors.erase("blk.0.attn_norm_2.weight"); })),
              HasSubstr("lacks tensor blk.0.attn_norm_2.weight"));
  EXPECT_THAT(Message(WithFolder(file,
                                 [](Checkpoint& each) {
                                   each.tensors["blk.0.odd.weight"] = each.tensors["fc.weight"];
                                 })),
              HasSubstr("has tensor 'blk.0.odd.weight', which is none of an EAGLE-3 drafter"));
}

TEST_F(LearnedDraftTest, OfAGgufFileOfBlocksSaysWhatTheFolderSays) {
  for (const std::string name : {"dflash", "dspark-speculators"}) {
    const std::string file = name + "-gguf/drafter.gguf";
    EXPECT_TRUE(IsLearnedDraft(Open(file)));
    const auto draft = Read(Open(file));
    ASSERT_TRUE(draft.ok()) << Message(draft);
    const auto of_folder = Read(Open(name));
    EXPECT_EQ(draft->config.architecture, of_folder->config.architecture);
    EXPECT_EQ(draft->config.feature, of_folder->config.feature);
    EXPECT_EQ(draft->config.parallel, of_folder->config.parallel);
    EXPECT_EQ(draft->config.markov, of_folder->config.markov);
    EXPECT_EQ(draft->config.layers, of_folder->config.layers);
    EXPECT_EQ(draft->translation == nullptr, of_folder->translation == nullptr);
  }
  const std::string file = "dflash-gguf/drafter.gguf";
  const auto with = [&](const char* key, GgufValue value) {
    return Message(
        WithFolder(file, [&](Checkpoint& each) { each.gguf->Add(key, std::move(value)); }));
  };
  EXPECT_THAT(with("dflash.selector_rank", std::uint64_t{8}),
              HasSubstr("drafter.gguf: has dflash.selector_rank, which is not read of GGUF files"));
  EXPECT_THAT(with("dflash.odd", true), HasSubstr("dflash.odd is true, and what that changes is"));
  const auto from_last =
      WithFolder(file, [](Checkpoint& each) { each.gguf->Add("dflash.sample_from_anchor", true); });
  ASSERT_TRUE(from_last.ok()) << Message(from_last);
  EXPECT_EQ(from_last->config.parallel.positions, 6);
  EXPECT_THAT(Message(WithFolder(
                  file, [](Checkpoint& each) { each.tensors.erase("enc.output_norm.weight"); })),
              HasSubstr("lacks tensor enc.output_norm.weight"));
}

// Numbers of a GGUF file are tokens, even where they could be what has to be added.
TEST_F(LearnedDraftTest, TokensOfAGgufFileAreNotAddedTo) {
  std::vector<std::int64_t> numbers(kDrafted);
  for (int own = 0; own < kDrafted; ++own) numbers[own] = own < 40 ? own + 41 : own - 40;
  const auto with_numbers = [&](Checkpoint& folder) {
    folder.others["d2t"] = {"I64", std::as_bytes(std::span(numbers))};
  };
  const auto draft = WithFolder("eagle3-gguf/drafter.gguf", with_numbers);
  ASSERT_TRUE(draft.ok()) << Message(draft);
  for (int own = 0; own < kDrafted; ++own) {
    EXPECT_EQ(draft->translation->said[numbers[own]], own);
  }
}

TEST_F(LearnedDraftTest, SaysWhichLayersItTakesWhereItsFolderDoesNot) {
  const auto guessed = Read(Open("eagle3"));
  ASSERT_TRUE(guessed.ok()) << Message(guessed);
  ASSERT_EQ(guessed->notes.size(), 1U);
  EXPECT_THAT(guessed->notes[0], HasSubstr("what enters 2, 3, 4 is taken"));
  const auto said = Read(Open("eagle3-specforge"));
  ASSERT_TRUE(said.ok()) << Message(said);
  EXPECT_THAT(said->notes, testing::IsEmpty());
}

TEST_F(LearnedDraftTest, GoesOnBehindThePositionsThatItWasMadeFor) {
  const auto draft =
      WithConfig("eagle3-specforge", [](Json& json) { json["max_position_embeddings"] = 128; });
  ASSERT_TRUE(draft.ok()) << Message(draft);
  EXPECT_EQ(draft->config.max_positions, 256);
  ASSERT_EQ(draft->notes.size(), 1U);
  EXPECT_THAT(draft->notes[0],
              HasSubstr("was made for texts of 128 tokens, its target is for 256"));
}

TEST_F(LearnedDraftTest, SharesTheTablesThatItLacks) {
  const auto eagle1 = Read(Open("eagle1"));
  ASSERT_TRUE(eagle1.ok()) << Message(eagle1);
  EXPECT_EQ(eagle1->checkpoint.Find("embedding.weight")->data,
            target_.Find("embedding.weight")->data);
  EXPECT_EQ(eagle1->checkpoint.Find("head.weight")->data, target_.Find("head.weight")->data);
  const auto own = Read(Open("eagle3-speculators"));
  ASSERT_TRUE(own.ok()) << Message(own);
  EXPECT_NE(own->checkpoint.Find("embedding.weight")->data, target_.Find("embedding.weight")->data);
  const auto whole = WithFolder("eagle3-whole",
                                [](Checkpoint& folder) { folder.tensors.erase("lm_head.weight"); });
  ASSERT_TRUE(whole.ok()) << Message(whole);
  EXPECT_EQ(whole->checkpoint.Find("head.weight")->data, target_.Find("head.weight")->data);
  EXPECT_EQ(whole->translation, nullptr);
}

TEST_F(LearnedDraftTest, ReadsNamesBehindModel) {
  const auto draft = WithFolder("eagle3", [](Checkpoint& folder) {
    const TensorMap tensors = std::move(folder.tensors);
    folder.tensors.clear();
    for (const auto& [name, tensor] : tensors) folder.tensors.emplace("model." + name, tensor);
  });
  EXPECT_TRUE(draft.ok()) << Message(draft);
}

TEST_F(LearnedDraftTest, RefusesConfigurations) {
  struct Case {
    std::string folder;
    ChangeConfig change;
    std::string message;
  };
  const auto set = [](const char* name, Json value) {
    return [name, value](Json& json) { json[name] = value; };
  };
  const std::vector<Case> cases = {
      {"eagle3", set("vocab_size", 64), "vocab_size is 64, but the target has 128 tokens"},
      {"eagle3", set("draft_vocab_size", 129), "d2t must have 129 elements"},
      {"eagle3", set("draft_vocab_size", 0), "draft_vocab_size"},
      {"eagle3", set("hidden_size", 64), "hidden_size is 64, but this one's is 32"},
      {"eagle3", set("target_hidden_size", 48), "hidden_size is 48, but this one's is 32"},
      {"eagle3", set("draft_further", true),
       "draft_further is true, and what that changes is not known"},
      {"eagle3", set("fc_norm", true), "lacks tensor fc_norm.0.weight of shape [32]"},
      {"eagle3", set("norm_before_fc", true), "lacks tensor input_norm.weight of shape [96]"},
      {"eagle3", set("num_hidden_layers", 2), "lacks tensor layers.1."},
      {"eagle3", set("intermediate_size", 40), "midlayer.mlp."},
      {"eagle3", set("eagle_config", {{"use_aux_hidden_state", false}}),
       "eagle_config: use_aux_hidden_state is false"},
      {"eagle3", set("eagle_config", {{"parallel_draft_step", 4}}),
       "parallel_draft_step is above 1"},
      {"eagle3", set("eagle_config", {{"use_mtp_layernorm", true}}), "use_mtp_layernorm is true"},
      {"eagle3", set("eagle_config", {{"eagle_aux_hidden_state_layer_ids", {1, 2, 7}}}),
       "eagle_aux_hidden_state_layer_ids"},
      {"eagle3", set("eagle_config", {{"eagle_aux_hidden_state_layer_ids", {1, 2}}}),
       "fc.weight must have shape [32, 64]"},
      {"eagle3-speculators", set("speculators_model_type", "xpress"),
       "speculators_model_type is xpress, but only eagle3, peagle, mtp, dflash and dspark are "
       "supported"},
      {"eagle3-speculators", set("eagle_aux_hidden_state_layer_ids", {1, 4, 8}),
       "eagle_aux_hidden_state_layer_ids"},
      {"eagle3-speculators-flags", set("norm_before_fc", true),
       "has both fc_norm and norm_before_fc"},
      {"eagle3-speculators",
       [](Json& json) { json["transformer_layer_config"]["model_type"] = "phi3"; },
       "model_type is 'phi3', but only llama, qwen3 are supported"},
      {"eagle3-speculators",
       [](Json& json) { json["transformer_layer_config"]["layer_types"] = {"sliding_attention"}; },
       "sliding_attention"},
      {"eagle3-speculators", [](Json& json) { json.erase("transformer_layer_config"); },
       "transformer_layer_config"},
      {"eagle3-specforge-norms", set("fc_norm", false), "fc_norm.0.weight is none that"},
      {"eagle3-narrow", set("target_hidden_size", nullptr), "hidden_size is 24"},
      {"eagle1", set("hidden_size", 64), "hidden_size is 64, but the target's is 32"},
      {"eagle1", set("bias", false), "fc.bias is a bias"},
      {"eagle1", set("qkv_bias", true), "self_attn.q_proj.bias"},
      {"eagle1", set("num_hidden_layers", 2), "lacks tensor layers.1."},
      {"eagle1", set("fancy", true), "fancy is true"},
      {"dflash", set("num_target_layers", 8), "is for a target of 8 layers, but this one has 7"},
      {"dflash", set("hidden_size", 64), "hidden_size is 64, but this one's is 32"},
      {"dflash", set("block_size", 65), "block_size"},
      {"dflash", set("num_hidden_layers", 3), "lacks tensor layers.2."},
      {"dflash", set("dflash_config", {{"target_layer_ids", {1, 3, 5}}}), "mask_token_id"},
      {"dflash", set("dflash_config", {{"mask_token_id", 5}}), "lacks target_layer_ids"},
      {"dflash", set("dflash_config", {{"mask_token_id", 5}, {"target_layer_ids", {1, 3, 7}}}),
       "target_layer_ids"},
      {"dflash", set("dflash_config", {{"mask_token_id", 5}, {"target_layer_ids", {1, 3}}}),
       "fc.weight must have shape [32, 64]"},
      {"dflash", [](Json& json) { json["dflash_config"]["selector_rank"] = 8; },
       "has selector_rank, which only drafters of a later kind have"},
      {"dflash", [](Json& json) { json["dflash_config"]["projector_type"] = "domino"; },
       "projector_type is 'domino', but only dflash and dspark are supported"},
      {"dflash", [](Json& json) { json["dflash_config"]["markov_rank"] = 8; },
       "has markov_rank, which only drafters of a later kind have"},
      {"dspark", set("markov_rank", 8), "markov_head.markov_w1.weight must have shape [128, 8]"},
      {"dspark", set("markov_head_type", "vanilla"),
       "markov_head.gate_proj.bias is a bias, and is none that"},
      {"dspark", set("markov_head_type", "rnn"), "lacks tensor markov_head.joint_proj.weight"},
      {"dspark", set("markov_head_type", "lstm"),
       "markov_head_type is 'lstm', but only vanilla, gated and rnn are supported"},
      {"dspark", set("markov_rank", 0), "has confidence_head_with_markov, but markov_rank is 0"},
      {"dspark", set("enable_confidence_head", false),
       "confidence_head.proj.bias is a bias, and is none that"},
      {"dspark", set("confidence_head_with_markov", false),
       "confidence_head.proj.weight must have shape [1, 32]"},
      {"dspark", set("model_type", "gemma4"), "model_type is 'gemma4', but only qwen3 is"},
      {"dspark", set("final_logit_softcapping", 30), "has final_logit_softcapping beside a Markov"},
      {"dspark", set("target_layer_ids", {-2, 3, 5}), "target_layer_ids"},
      {"dspark-specforge", set("sample_from_anchor", false),
       "has a Markov head of the kind rnn that begins before the first token"},
      {"dspark-speculators", set("markov_rank", nullptr), "markov_w1.weight must have shape"},
      {"dflash", [](Json& json) { json["dflash_config"]["use_swa"] = true; }, "use_swa is true"},
      {"dflash-windows", set("is_causal", false), "layers with windows that look both ways"},
      {"dflash-windows", set("use_sliding_window", false), "use_sliding_window is not true"},
      {"dflash-windows", set("layer_types", {"sliding_attention"}), "layer_types"},
      {"dflash-speculators", set("aux_hidden_state_layer_ids", {1, 4, 8}),
       "aux_hidden_state_layer_ids"},
      {"peagle-speculators", set("mask_token_id", 128), "mask_token_id"},
      {"peagle-speculators", set("speculators_model_type", "eagle3"), "mask_hidden"},
      {"dflash-speculators", set("mask_token_id", nullptr), "mask_token_id"},
      {"speculators-mtp-qwen3", set("num_nextn_predict_layers", 2), "num_nextn_predict_layers"},
      {"speculators-mtp-qwen3",
       [](Json& json) { json["transformer_layer_config"]["hidden_size"] = 64; },
       "hidden_size is 64, but this one's is 32"},
      {"speculators-mtp-qwen3",
       [](Json& json) { json["transformer_layer_config"]["model_type"] = "llama"; },
       "model_type is 'llama', but only qwen3, "},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(Message(WithConfig(each.folder, each.change)), HasSubstr(each.message))
        << each.folder;
  }
}

TEST_F(LearnedDraftTest, DescribesBlocks) {
  const auto draft = Read(Open("dflash"));
  ASSERT_TRUE(draft.ok()) << Message(draft);
  EXPECT_EQ(draft->config.parallel,
            (ParallelSpec{.positions = 5, .mask_token = 5, .block = 6, .in_place = true}));
  EXPECT_TRUE(draft->config.layers[0].attention.both_ways);
  const auto from_the_last =
      WithConfig("dflash-speculators", [](Json& json) { json["sample_from_anchor"] = true; });
  ASSERT_TRUE(from_the_last.ok()) << Message(from_the_last);
  EXPECT_EQ(from_the_last->config.parallel,
            (ParallelSpec{.positions = 5, .mask_token = 3, .block = 5}));
  const auto windows = Read(Open("dflash-windows"));
  ASSERT_TRUE(windows.ok()) << Message(windows);
  EXPECT_FALSE(windows->config.layers[0].attention.both_ways);
  EXPECT_EQ(windows->config.layers[0].attention.window, 8);
  EXPECT_TRUE(windows->config.layers[1].attention.both_ways);
}

TEST_F(LearnedDraftTest, DescribesHeadsThatReadTheTokenBefore) {
  using Kind = MarkovSpec::Kind;
  const auto own = Read(Open("dspark"));
  ASSERT_TRUE(own.ok()) << Message(own);
  EXPECT_EQ(
      own->config.markov,
      (MarkovSpec{
          .rank = 12, .kind = Kind::kGated, .confidence = true, .confidence_reads_tokens = true}));
  EXPECT_EQ(own->config.parallel, (ParallelSpec{.positions = 6, .mask_token = 5, .block = 6}));
  EXPECT_EQ(own->config.feature.points, (std::vector<int>{0, 4, 6}));
  const auto specforge = Read(Open("dspark-specforge"));
  ASSERT_TRUE(specforge.ok()) << Message(specforge);
  EXPECT_EQ(specforge->config.markov,
            (MarkovSpec{.rank = 16, .kind = Kind::kRecurrent, .confidence = true}));
  const auto in_place =
      WithConfig("dspark-speculators", [](Json& json) { json["sample_from_anchor"] = false; });
  ASSERT_TRUE(in_place.ok()) << Message(in_place);
  EXPECT_EQ(in_place->config.parallel,
            (ParallelSpec{.positions = 4, .mask_token = 3, .block = 5, .in_place = true}));
  EXPECT_EQ(in_place->config.markov.kind, Kind::kVanilla);
}

TEST_F(LearnedDraftTest, RefusesTensors) {
  const TensorView odd{WeightFormat::kF32, {1}, nullptr};
  EXPECT_THAT(Message(WithFolder("eagle3",
                                 [&](Checkpoint& folder) { folder.tensors["mask_hidden"] = odd; })),
              HasSubstr("eagle3: has tensor 'mask_hidden', which is none of an EAGLE-3 drafter"));
  EXPECT_THAT(Message(WithFolder("eagle3", [](Checkpoint& folder) { folder.others["odd"] = {}; })),
              HasSubstr("has tensor 'odd', which is none of an EAGLE-3 drafter"));
  EXPECT_THAT(Message(WithFolder(
                  "eagle3", [&](Checkpoint& folder) { folder.tensors["model.fc.weight"] = odd; })),
              HasSubstr("has a tensor twice"));
  EXPECT_THAT(Message(WithFolder("eagle1",
                                 [&](Checkpoint& folder) { folder.tensors["norm.weight"] = odd; })),
              HasSubstr("'norm.weight', which is none of an EAGLE-1 drafter"));
  EXPECT_THAT(Message(WithFolder("eagle1",
                                 [&](Checkpoint& folder) {
                                   folder.tensors["layers.0.input_layernorm.weight"] = odd;
                                 })),
              HasSubstr("layers.0.input_layernorm.weight is none that"));
  for (const char* name :
       {"fc.weight", "norm.weight", "lm_head.weight", "midlayer.hidden_norm.weight",
        "midlayer.input_layernorm.weight", "midlayer.self_attn.q_proj.weight"}) {
    EXPECT_THAT(
        Message(WithFolder("eagle3", [name](Checkpoint& folder) { folder.tensors.erase(name); })),
        HasSubstr(std::string("lacks tensor ") + name));
  }
  EXPECT_THAT(
      Message(WithFolder("eagle3-narrow",
                         [](Checkpoint& folder) { folder.tensors.erase("embed_tokens.weight"); })),
      HasSubstr("lacks tensor embed_tokens.weight, and the target's has 32 numbers for a "
                "token, where 24 are needed"));
}

class DraftedTokensTest : public LearnedDraftTest {
 protected:
  Result<LearnedDraft> Drafting(const std::function<void(std::vector<std::int64_t>&)>& change,
                                bool marked) {
    return WithFolder("eagle3", [&](Checkpoint& folder) {
      numbers_.resize(kDrafted);
      std::memcpy(numbers_.data(), folder.others["d2t"].data.data(), numbers_.size() * 8);
      change(numbers_);
      folder.others["d2t"].data = std::as_bytes(std::span(numbers_));
      if (!marked) folder.others.erase("t2d");
    });
  }
  static void MakeAbsolute(std::vector<std::int64_t>& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += i;
  }

  std::vector<std::int64_t> numbers_;
};

TEST_F(DraftedTokensTest, MayBeOffsetsOrTokens) {
  const auto usual = Read(Open("eagle3"));
  ASSERT_TRUE(usual.ok()) << Message(usual);
  ASSERT_NE(usual->translation, nullptr);
  for (const bool marked : {false, true}) {
    const auto offsets = Drafting([](auto& /*numbers*/) {}, marked);
    ASSERT_TRUE(offsets.ok()) << Message(offsets);
    EXPECT_EQ(offsets->translation->said, usual->translation->said);
    const auto absolute = Drafting(MakeAbsolute, marked);
    ASSERT_TRUE(absolute.ok()) << Message(absolute);
    EXPECT_EQ(absolute->translation->said, usual->translation->said);
  }
  const std::vector<Token>& said = usual->translation->said;
  EXPECT_EQ(said.size(), 128U);
  EXPECT_EQ(std::ranges::count(said, -1), 128 - kDrafted);
  EXPECT_EQ(usual->translation->eos, target_config_.eos);
}

TEST_F(DraftedTokensTest, RefusesOthers) {
  const auto twice = [](std::vector<std::int64_t>& numbers) { numbers[1] = numbers[0] - 1; };
  const auto beyond = [](std::vector<std::int64_t>& numbers) { numbers[79] = INT64_MAX; };
  const auto below = [](std::vector<std::int64_t>& numbers) { numbers[0] = INT64_MIN; };
  for (const bool marked : {false, true}) {
    EXPECT_THAT(Message(Drafting(twice, marked)),
                HasSubstr("d2t does not name 80 different tokens of the target's 128"));
    EXPECT_THAT(Message(Drafting(beyond, marked)), HasSubstr("d2t does not name"));
    EXPECT_THAT(Message(Drafting(below, marked)), HasSubstr("d2t does not name"));
  }
  const std::vector<std::byte> none(128);
  EXPECT_THAT(
      Message(WithFolder("eagle3", [&](Checkpoint& folder) { folder.others["t2d"].data = none; })),
      HasSubstr("those that t2d marks"));
  EXPECT_THAT(Message(WithFolder("eagle3", [](Checkpoint& folder) { folder.others.erase("d2t"); })),
              HasSubstr("lacks tensor d2t, which says which 80 of the target's 128 tokens"));
  EXPECT_THAT(
      Message(WithFolder("eagle3", [](Checkpoint& folder) { folder.others["d2t"].dtype = "F64"; })),
      HasSubstr("d2t must have 80 elements of dtype I64"));
  EXPECT_THAT(Message(WithFolder("eagle3",
                                 [](Checkpoint& folder) {
                                   folder.others["t2d"].data = folder.others["t2d"].data.first(127);
                                 })),
              HasSubstr("t2d must have 128 elements of dtype BOOL"));
}

}  // namespace
}  // namespace foretoken
