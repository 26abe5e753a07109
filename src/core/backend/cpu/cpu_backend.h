#pragma once

#include <memory>
#include <vector>

#include "base/threads/thread_pool.h"
#include "core/backend/backend.h"
#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/quant/quant_kernels.h"

namespace foretoken {

/// The kernels of each instruction set that this machine and its operating system let a program
/// use, the fastest last. Never empty. Asks the system for the use of AMX tiles where there are
/// any.
const std::vector<const cpu::Kernels*>& AvailableKernels();

/// The backend of one CPU device, of any precision but kPortable. Weights and KV have one layout
/// for all instruction sets. Kernels and pool outlive it; without a pool the calling thread works
/// alone.
std::unique_ptr<Backend> MakeCpuBackend(const cpu::Kernels& kernels, ThreadPool* pool,
                                        Numerics numerics);

/// Sets of kernels whose results are the same bits, whatever the machine: those of the portable
/// arithmetic. The fastest last, never empty.
const std::vector<const cpu::Kernels*>& PortableKernels();

/// The backend of the portable arithmetic (Precision::kPortable), from one of PortableKernels and
/// one of AvailableQuantKernels.
std::unique_ptr<Backend> MakePortableCpuBackend(const cpu::Kernels& kernels,
                                                const cpu::QuantKernels& quant, ThreadPool* pool,
                                                KvFormat kv = KvFormat::kBF16);

}  // namespace foretoken
