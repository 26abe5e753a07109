#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/threads/thread_pool.h"
#include "core/backend/backend.h"
#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/quant/quant_kernels.h"
#include "core/tensor/buffer.h"

namespace foretoken::cpu {

/// Products of rows and matrices as Backend describes them, and the room that they take. Borrows
/// kernels and pool.
class MatrixProducts {
 public:
  /// `quant` may be null where no matrix is quantised, `pool` where one thread works.
  MatrixProducts(const Kernels& kernels, const QuantKernels* quant, ThreadPool* pool);

  /// y = x * weights^T, or with `add` y += x * weights^T.
  void MatMul(const Matrix& weights, const float* x, int rows, bool add, float* y);
  void MatMulMaxima(const Matrix& weights, const float* x, int rows, float* y, float* maxima);
  void MatMulGroups(const Matrix& stack, std::span<const RowGroup> groups, const float* bias,
                    const float* x, float* y);

 private:
  // y [rows, outputs] (+)= x [rows, inputs] times one matrix of a stack.
  struct Product {
    const Matrix& weights;
    int matrix;
    const float* x;
    const RowBlock* blocks;  // The rows of x, quantised, for quantised bands.
    int rows;
    float* y;
    bool add;
    const float* bias = nullptr;      // What y is before the product is added; or null.
    const std::byte* next = nullptr;  // What the worker reads after its panels, if that is known.
  };
  // Panels [begin, end) of a band.
  struct Panels {
    const MatrixBand& band;
    int begin;
    int end;

    int outputs() const { return band.end - band.begin; }  // The whole band's.
  };
  struct PackedPanels {
    const std::byte* data;
    int begin;
    int end;
    const std::byte* next = nullptr;  // As in Product.
  };
  // The room of one worker.
  struct Room {
    Buffer rows;   // What kernels make of rows.
    Buffer panel;  // A panel of a borrowed matrix, and the weights of an output.
  };

  void QuantizeInputs(const Matrix& weights, const float* x, int rows);
  void QuantizeGroups(const Matrix& stack, std::span<const RowGroup> groups, const float* x);
  void GrowRowBlocks(int rows, int inputs);
  // Every worker gets the room for products with `weights` before they share them: which workers
  // come is chance, and an allocation that fails on a thread of the pool could not be reported.
  void GrowRooms(const Matrix& weights);
  RowBlock* BlocksOf(const Matrix& stack, const RowGroup& group);
  void MultiplyPanels(const Product& product, std::int64_t begin, std::int64_t end, Room* room);
  static void FillWithBias(const Product& product, const Panels& panels);
  // `next` as in Product, after these panels.
  void MultiplyPacked(const Product& product, const Panels& panels, const std::byte* next,
                      void* scratch);
  void MultiplyBorrowed(const Product& product, const Panels& panels, Room* room);
  void Multiply(const Product& product, WeightFormat format, const PackedPanels& panels,
                int outputs, float* y, void* scratch);

  const Kernels& kernels_;
  const QuantKernels* quant_;
  ThreadPool* pool_;
  Buffer row_blocks_;  // The inputs of a product, quantised.
  std::vector<Room> rooms_;
};

}  // namespace foretoken::cpu
