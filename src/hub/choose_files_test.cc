#include "hub/choose_files.h"

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
std::string Refusal(const Paths& paths, std::string_view name = "org/name") {
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
      Refusal({"m-IQ2_M.gguf", "m-IQ1_S.gguf"}),
      "org/name has none of the usual quantisations: name one of IQ1_S, IQ2_M behind a colon");
  EXPECT_EQ(Refusal({"a-Q4_K_M.gguf", "b-Q4_K_M.gguf"}),
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
  EXPECT_EQ(Refusal(all, "org/name:Q4"),
            "org/name has no Q4; it has F16, Q4_K_M, Q8_0, UD-Q4_K_XL");
  EXPECT_EQ(Refusal(all, "org/name:m.gguf"),
            "org/name has no file m.gguf; it has m-Q4_K_M.gguf, m-Q8_0.gguf, m-UD-Q4_K_XL.gguf, "
            "sub/m.f16.gguf");
  EXPECT_EQ(Refusal({"a-Q8_0.gguf", "b-Q8_0.gguf"}, "org/name:Q8_0"),
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
  EXPECT_EQ(Refusal(all, "org/name:Q8_0"),
            "of org/name:Q8_0 there are 2 of the 3 parts that 'Q8_0/m-Q8_0-00001-of-00003.gguf' "
            "has");
  EXPECT_THAT(FilesCalled(all, ParseModelName("org/name:Q8_0").value()),
              ElementsAre("Q8_0/m-Q8_0-00001-of-00003.gguf", "Q8_0/m-Q8_0-00003-of-00003.gguf"));
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
                     "generation_config.json"};
  EXPECT_THAT(Choose(all)->paths, UnorderedElementsAre("config.json", "generation_config.json",
                                                       "tokenizer.json", "tokenizer_config.json",
                                                       "chat_template.jinja", "model.safetensors"));
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
  EXPECT_EQ(
      Refusal({"config.json", "pytorch_model.bin.index.json", "pytorch_model-00001-of-00002.bin"}),
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
  EXPECT_EQ(Refusal({"config.json", "tf_model.h5", "tokenizer.json"}),
            "org/name holds no model that runs here: neither GGUF files nor a config.json with "
            "weights in model.safetensors or pytorch_model.bin");
  EXPECT_EQ(Refusal({"config.json", "model.safetensors.index.json", "tokenizer.json",
                     "model-00001-of-00003.safetensors"}),
            "of org/name there are 1 of the 3 files of weights");
  EXPECT_EQ(Refusal({"config.json", "model.safetensors", "tokenizer.json"}, "org/name:Q8_0"),
            "org/name has no GGUF files, among which ':Q8_0' could choose: leave it out");
  EXPECT_EQ(Refusal({}),
            "org/name holds no model that runs here: neither GGUF files nor a config.json with "
            "weights in model.safetensors or pytorch_model.bin");
}

}  // namespace
}  // namespace foretoken
