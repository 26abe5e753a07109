#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <random>

#include "draft/retriever.h"

namespace {

int allocations = 0;

}  // namespace

// Counts every allocation of this test program.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void* operator new(std::size_t bytes) {
  void* memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace foretoken {
namespace {

TEST(Retriever, AllocatesNothingInSteadyState) {
  std::mt19937 random(1);
  std::vector<std::shared_ptr<const Segment>> segments;
  for (int s = 0; s < 2; ++s) {
    TokenText text(100'000);
    for (int d = 0; d < 50; ++d) {
      std::vector<Token> document(400);
      for (Token& token : document) token = static_cast<Token>(random() % 30);
      ASSERT_TRUE(text.Append(document).ok());
    }
    segments.push_back(Segment::Build(std::move(text), 1));
  }
  InputTrie input(500);
  std::vector<Token> context;
  context.reserve(10'000);
  Retriever retriever;
  Proposal proposal;
  const auto step = [&] {
    context.push_back(static_cast<Token>(random() % 30));
    input.Append(context.back());
    retriever.Propose(&input, segments, context, 32, &proposal);
  };
  for (int i = 0; i < 2000; ++i) step();
  allocations = 0;
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(proposal.size(), 31);
}

}  // namespace
}  // namespace foretoken
