#include "text/hub/repository/choose_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

using Paths = std::vector<std::string>;

Result<ModelFiles> Choose(const Paths& paths, std::string_view name = "org/name") {
  return ChooseFiles(paths, ParseModelName(name).value());
}
std::string ChoiceRefusal(const Paths& paths, std::string_view name = "org/name") {
  const Result<ModelFiles> files = Choose(paths, name);
  return files.ok() ? "accepted" : files.error().message;
}

TEST(ChooseFiles, NamesTellQuantisations) {
  EXPECT_EQ(QuantisationOf("Some-Model-1B-Instruct-Q4_K_M.gguf"), "Q4_K_M");
  EXPECT_EQ(QuantisationOf("some.model-1.5b.q8_0.gguf"), "Q8_0");
  EXPECT_EQ(QuantisationOf("Q4_K_M/Model-Q5_K_S-00001-of-00002.gguf"), "Q5_K_S");
  EXPECT_EQ(QuantisationOf("Model-UD-Q4_K_XL.gguf"), "UD-Q4_K_XL");
  EXPECT_EQ(QuantisationOf("model_f16.gguf"), "F16");
  EXPECT_EQ(QuantisationOf("model-bf16.GGUF"), "BF16");
  EXPECT_EQ(QuantisationOf("IQ4_XS.gguf"), "IQ4_XS");
  EXPECT_EQ(QuantisationOf("gpt-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(QuantisationOf("Qwen2-F1-model.gguf"), "");  // Words behind it are of the name.
  EXPECT_EQ(QuantisationOf("model.gguf"), "");
}

TEST(ChooseFiles, UsualQuantisationsComeFirst) {
  const Paths all = {"README.md", "m-F16.gguf", "m-IQ2_M.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf"};
  EXPECT_EQ(Choose(all)->entry, "m-Q4_K_M.gguf");
  EXPECT_TRUE(Choose(all)->certain);
  const Paths fewer = {"m-F16.gguf", "m-IQ2_M.gguf", "m-Q8_0.gguf"};
  EXPECT_THAT(Choose(fewer)->paths, ElementsAre("m-Q8_0.gguf"));
  EXPECT_FALSE(Choose(fewer)->certain);  // The repository may have a Q4_K_M by now.
  EXPECT_EQ(Choose({"mmproj-F16.gguf", "whatever.gguf", "imatrix.gguf"})->entry, "whatever.gguf");
  EXPECT_EQ(
      ChoiceRefusal({"m-IQ2_M.gguf", "m-IQ1_S.gguf"}),
      "org/name has none of the usual quantisations: name one of IQ1_S, IQ2_M behind a colon");
  EXPECT_EQ(ChoiceRefusal({"a-Q4_K_M.gguf", "b-Q4_K_M.gguf"}),
            "org/name has several models: name one of a-Q4_K_M.gguf, b-Q4_K_M.gguf behind a colon");
}

TEST(ChooseFiles, QuantisationsAndFilesAreNamed) {
  const Paths all = {"m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-UD-Q4_K_XL.gguf", "sub/m.f16.gguf"};
  EXPECT_EQ(Choose(all, "org/name:q8_0")->entry, "m-Q8_0.gguf");
  EXPECT_TRUE(Choose(all, "org/name:q8_0")->certain);
  EXPECT_EQ(Choose(all, "org/name:Q4_K_XL")->entry, "m-UD-Q4_K_XL.gguf");
  EXPECT_EQ(Choose(all, "org/name:F16")->entry, "sub/m.f16.gguf");
  EXPECT_EQ(Choose(all, "org/name:m.f16.gguf")->entry, "sub/m.f16.gguf");
  EXPECT_EQ(Choose(all, "org/name:sub/m.f16.gguf")->entry, "sub/m.f16.gguf");
  EXPECT_EQ(ChoiceRefusal(all, "org/name:Q4"),
            "org/name has no Q4; it has F16, Q4_K_M, Q8_0, UD-Q4_K_XL");
  EXPECT_EQ(ChoiceRefusal(all, "org/name:m.gguf"),
            "org/name has no file m.gguf; it has m-Q4_K_M.gguf, m-Q8_0.gguf, m-UD-Q4_K_XL.gguf, "
            "sub/m.f16.gguf");
  EXPECT_EQ(ChoiceRefusal({"a-Q8_0.gguf", "b-Q8_0.gguf"}, "org/name:Q8_0"),
            "Q8_0 could be several files of org/name: name one of a-Q8_0.gguf, b-Q8_0.gguf behind "
            "the colon");
}

TEST(ChooseFiles, SplitModelsAreWhole) {
  const Paths all = {"Q4_K_M/m-Q4_K_M-00002-of-00002.gguf", "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf",
                     "Q8_0/m-Q8_0-00001-of-00003.gguf", "Q8_0/m-Q8_0-00003-of-00003.gguf"};
  EXPECT_THAT(Choose(all)->paths, ElementsAre("Q4_K_M/m-Q4_K_M-00001-of-00002.gguf",
                                              "Q4_K_M/m-Q4_K_M-00002-of-00002.gguf"));
  EXPECT_EQ(Choose(all)->entry, "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf");
  // Any part stands for all, and opening begins with the first.
  EXPECT_EQ(Choose(all, "org/name:m-Q4_K_M-00002-of-00002.gguf")->entry,
            "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf");
  EXPECT_EQ(ChoiceRefusal(all, "org/name:Q8_0"),
            "of org/name:Q8_0 there are 2 of the 3 parts that 'Q8_0/m-Q8_0-00001-of-00003.gguf' "
            "has");
  EXPECT_THAT(FilesCalled(all, ParseModelName("org/name:Q8_0").value()),
              ElementsAre("Q8_0/m-Q8_0-00001-of-00003.gguf", "Q8_0/m-Q8_0-00003-of-00003.gguf"));
}

std::string Draft(const Paths& paths, std::string_view text = "org/name") {
  ModelName name = ParseModelName(text).value();
  name.use = ModelUse::kDraft;
  const Result<ModelFiles> files = ChooseFiles(paths, name);
  return files.ok() ? files->entry : files.error().message;
}

TEST(ChooseFiles, ADrafterIsNotTakenForItsModel) {
  const Paths dynamic = {"X-UD-Q4_K_XL.gguf", "MTP/mtp-X-Q8_0.gguf"};
  EXPECT_EQ(Choose(dynamic)->entry, "X-UD-Q4_K_XL.gguf");
  EXPECT_EQ(Draft(dynamic), "MTP/mtp-X-Q8_0.gguf");
  EXPECT_EQ(ChoiceRefusal(dynamic, "org/name:Q8_0"), "org/name has no Q8_0; it has UD-Q4_K_XL");
  EXPECT_EQ(Choose(dynamic, "org/name:mtp-X-Q8_0.gguf")->entry, "MTP/mtp-X-Q8_0.gguf");
  // The same quantisation beside it.
  for (const char* drafter :
       {"Qw-DFlash-Q8_0.gguf", "Qw-MTP-Q8_0.gguf", "mtp-Qw-Q8_0.gguf", "Qw-eagle3-Q8_0.gguf",
        "draft/Qw-0.6B-Q8_0.gguf", "Qw_draft_q8_0.gguf", "Qw-assistant.Q8_0.gguf"}) {
    const Paths both = {"Qw-Q8_0.gguf", drafter};
    EXPECT_EQ(Choose(both, "org/name:Q8_0")->entry, "Qw-Q8_0.gguf") << drafter;
    EXPECT_TRUE(Choose(both, "org/name:Q8_0")->certain);
    EXPECT_EQ(Choose(both)->entry, "Qw-Q8_0.gguf");
    EXPECT_EQ(Draft(both, "org/name:Q8_0"), drafter);
    EXPECT_EQ(Draft(both), drafter);
    EXPECT_THAT(FilesCalled(both, ParseModelName("org/name:Q8_0").value()),
                ElementsAre("Qw-Q8_0.gguf"));
  }
}

TEST(ChooseFiles, AWordThatAllFilesHaveSetsNoneApart) {
  const Paths all = {"MiMo-MTP-Q4_K_M.gguf", "MiMo-MTP-Q8_0.gguf", "mmproj-MiMo-F16.gguf"};
  EXPECT_EQ(Choose(all)->entry, "MiMo-MTP-Q4_K_M.gguf");
  EXPECT_EQ(Choose(all, "org/name:Q8_0")->entry, "MiMo-MTP-Q8_0.gguf");
  EXPECT_EQ(Choose({"Eagle2-9B-lora-merged.Q4_K_M.gguf"})->entry,
            "Eagle2-9B-lora-merged.Q4_K_M.gguf");
  // By a cache that has nothing else it could be the drafter of another: the hub is asked.
  EXPECT_FALSE(Choose({"MTP/mtp-X-Q4_K_M.gguf"})->certain);
  EXPECT_FALSE(Choose({"MTP/mtp-X-Q8_0.gguf"}, "org/name:Q8_0")->certain);
}

TEST(ChooseFiles, ADraftMayBeAnOrdinaryModel) {
  const Paths models = {"small-Q4_K_M.gguf", "small-Q8_0.gguf"};
  EXPECT_EQ(Draft(models), "small-Q4_K_M.gguf");
  EXPECT_EQ(Draft(models, "org/name:Q8_0"), "small-Q8_0.gguf");
  EXPECT_EQ(Draft({"big-Q4_K_M.gguf", "mtp-big-Q8_0.gguf"}, "org/name:Q4_K_M"), "big-Q4_K_M.gguf");
  EXPECT_EQ(Draft({"config.json", "model.safetensors"}), "");
}

TEST(ChooseFiles, WhatLiesBesideAModelIsNone) {
  for (const char* beside :
       {"mmproj-F16.gguf", "llava-mmproj-f16.gguf", "m.mmproj-Q8_0.gguf", "imatrix.gguf",
        "m.imatrix.gguf", "imatrix_unsloth.gguf", "m-lora-F16.gguf", "loras/style-F16.gguf",
        "adapter-f16.gguf", "m-control-vector.gguf", "ggml-vocab-m.gguf",
        "vision_projector-f16.gguf"}) {
    EXPECT_EQ(Choose({beside, "whatever-F16.gguf"})->entry, "whatever-F16.gguf") << beside;
    EXPECT_EQ(Choose({beside, "whatever.gguf"}, "org/name")->entry, "whatever.gguf") << beside;
  }
  EXPECT_EQ(Choose({"m-imatrix-Q4_K_M.gguf", "m-imatrix-Q8_0.gguf"})->entry,
            "m-imatrix-Q4_K_M.gguf");
  EXPECT_EQ(Choose({"m-Q4_K_M-imatrix.gguf", "README.md"})->entry, "m-Q4_K_M-imatrix.gguf");
  // A folder of safetensors may have such files beside it, too.
  EXPECT_EQ(Choose({"config.json", "model.safetensors", "mmproj-f16.gguf"})->entry, "");
}

TEST(ChooseFiles, AFolderMayTellTheQuantisation) {
  EXPECT_EQ(QuantisationOf("Q4_K_M/model-00001-of-00002.gguf"), "Q4_K_M");
  EXPECT_EQ(QuantisationOf("UD-Q2_K_XL/model.gguf"), "UD-Q2_K_XL");
  EXPECT_EQ(QuantisationOf("gguf/model.gguf"), "");
  EXPECT_EQ(Choose({"BF16/m-00001-of-00001.gguf", "Q8_0/m-00001-of-00001.gguf"})->entry,
            "Q8_0/m-00001-of-00001.gguf");
}

TEST(ChooseFiles, FoldersHaveWhatIsRead) {
  const Paths all = {"README.md",
                     "config.json",
                     "consolidated.safetensors",
                     "model.safetensors",
                     "pytorch_model.bin",
                     "sub/model.safetensors",
                     "tokenizer.json",
                     "tokenizer_config.json",
                     "chat_template.jinja",
                     "additional_chat_templates/tool_use.jinja",
                     "additional_chat_templates/rag.jinja",
                     "additional_chat_templates/old/rag.jinja",
                     "additional_chat_templates/README.md",
                     "sub/additional_chat_templates/x.jinja",
                     "generation_config.json"};
  EXPECT_THAT(Choose(all)->paths,
              UnorderedElementsAre("config.json", "generation_config.json", "tokenizer.json",
                                   "tokenizer_config.json", "chat_template.jinja",
                                   "additional_chat_templates/tool_use.jinja",
                                   "additional_chat_templates/rag.jinja", "model.safetensors"));
  EXPECT_EQ(Choose(all)->entry, "");

  const Paths sharded = {"config.json",
                         "model-00001-of-00002.safetensors",
                         "model-00002-of-00002.safetensors",
                         "model.safetensors",  // The index is read, and this is not.
                         "model.safetensors.index.json",
                         "tokenizer.model"};
  EXPECT_THAT(
      Choose(sharded)->paths,
      UnorderedElementsAre("config.json", "tokenizer.model", "model.safetensors.index.json",
                           "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"));
}

TEST(ChooseFiles, PickledTensorsAreTakenWhereThereIsNothingElse) {
  EXPECT_THAT(Choose({"config.json", "pytorch_model.bin", "training_args.bin"})->paths,
              UnorderedElementsAre("config.json", "pytorch_model.bin"));
  EXPECT_THAT(
      Choose({"config.json", "pytorch_model.bin", "pytorch_model.bin.index.json",
              "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"})
          ->paths,
      UnorderedElementsAre("config.json", "pytorch_model.bin.index.json",
                           "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"));
  EXPECT_THAT(Choose({"config.json", "model.safetensors", "pytorch_model.bin.index.json",
                      "pytorch_model-00001-of-00002.bin"})
                  ->paths,
              UnorderedElementsAre("config.json", "model.safetensors"));
  EXPECT_EQ(ChoiceRefusal({"config.json", "pytorch_model.bin.index.json",
                           "pytorch_model-00001-of-00002.bin"}),
            "of org/name there are 1 of the 2 files of weights");
}

TEST(ChooseFiles, HeadsHaveAFileOfTheirOwn) {
  EXPECT_THAT(Choose({"config.json", "medusa_lm_head.pt", "README.md"})->paths,
              UnorderedElementsAre("config.json", "medusa_lm_head.pt"));
  EXPECT_THAT(Choose({"config.json", "medusa_lm_head.safetensors", "medusa_lm_head.pt"})->paths,
              UnorderedElementsAre("config.json", "medusa_lm_head.safetensors"));
  EXPECT_THAT(Choose({"config.json", "hydra_lm_head.pt", "README.md"})->paths,
              UnorderedElementsAre("config.json", "hydra_lm_head.pt"));
}

TEST(ChooseFiles, FoldersAreWhole) {
  EXPECT_EQ(ChoiceRefusal({"config.json", "tf_model.h5", "tokenizer.json"}),
            "org/name holds no model that runs here: neither GGUF files nor a config.json with "
            "weights in model.safetensors or pytorch_model.bin");
  EXPECT_EQ(ChoiceRefusal({"config.json", "model.safetensors.index.json", "tokenizer.json",
                           "model-00001-of-00003.safetensors"}),
            "of org/name there are 1 of the 3 files of weights");
  EXPECT_EQ(ChoiceRefusal({"config.json", "model.safetensors", "tokenizer.json"}, "org/name:Q8_0"),
            "org/name has no GGUF files, among which ':Q8_0' could choose: leave it out");
  EXPECT_EQ(ChoiceRefusal({}),
            "org/name holds no model that runs here: neither GGUF files nor a config.json with "
            "weights in model.safetensors or pytorch_model.bin");
}

}  // namespace
}  // namespace foretoken
