#pragma once

// Helpers shared by the tests of this layer.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/threads/cores.h"
#include "base/threads/thread_pool.h"
#include "core/backend/backend.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/testing/reference_backend.h"
#include "core/model/model.h"
#include "core/model/model_weights.h"

namespace foretoken {

/// A backend that every test of the whole model runs on.
struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<Backend>(Precision)> make;
};

inline std::vector<BackendCase> BackendCases() {
  std::vector<BackendCase> cases = {{"reference", MakeReferenceBackend}};
  for (const cpu::Kernels* kernels : AvailableKernels()) {
    cases.push_back({std::string("cpu/") + kernels->name, [kernels](Precision precision) {
                       return MakeCpuBackend(*kernels, nullptr, precision);
                     }});
  }
  cases.push_back({"cpu/threads", [](Precision precision) {
                     static ThreadPool pool(AvailableCores());
                     return MakeCpuBackend(*AvailableKernels().back(), &pool, precision);
                   }});
  return cases;
}

/// `name` with what a test's name may not hold replaced.
inline std::string TestName(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

inline void PrintTo(const BackendCase& backend, std::ostream* out) { *out << backend.name; }

/// The same for the same count.
inline std::vector<Token> RandomTokens(int count, int vocabulary) {
  std::mt19937 engine(5);
  std::vector<Token> tokens(count);
  for (Token& token : tokens) token = static_cast<Token>(engine() % vocabulary);
  return tokens;
}

/// A model of random weights of its own.
inline std::unique_ptr<Model> SyntheticModel(const ModelConfig& config, std::uint64_t seed,
                                             Backend* backend) {
  return SyntheticWeights(config, seed, backend)->MakeModel(backend);
}

/// The largest difference, as a share of the largest logit.
inline float Apart(std::span<const float> logits, std::span<const float> expected) {
  float largest = 0;
  float most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    most = std::max(most, std::fabs(logits[i] - expected[i]));
  }
  return most / largest;
}

/// One sequence whose position p lies in slot p, and the logits of its rows.
class SequenceRunner {
 public:
  SequenceRunner(Model* model, int max_length, AdapterUse adapter = {})
      : model_(model),
        adapter_(adapter),
        kv_(model->backend().AllocateKv(
            model->KvShapeFor((max_length + kBlockSize - 1) / kBlockSize))) {
    for (int block = 0; block < kv_.shape.blocks; ++block) blocks_.push_back(block);
  }

  /// Appends `tokens` in one pass and returns the logits of all of them; the model has their
  /// states.
  const float* Append(std::span<const Token> tokens) {
    batch_.Clear();
    batch_.block_tables.push_back(blocks_.data());
    for (const Token token : tokens) {
      const RowPlace place{length_, length_, 0, length_ + 1, 0};
      batch_.rows.push_back(ForwardRow{token, place, true, true, adapter_});
      ++length_;
    }
    return model_->Forward(batch_, kv_).values;
  }

 private:
  Model* model_;
  AdapterUse adapter_;
  KvStore kv_;
  std::vector<std::int32_t> blocks_;
  ForwardBatch batch_;
  std::int32_t length_ = 0;
};

}  // namespace foretoken
