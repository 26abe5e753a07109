#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "base/thread_pool.h"

namespace foretoken {

/// The kernels of each instruction set that this machine and its operating system let a program
/// use, the fastest last. Never empty. Asks the system for the use of AMX tiles where there are
/// any.
const std::vector<const cpu::Kernels*>& AvailableKernels();

/// The backend of one CPU device. Weights and KV have one layout for all instruction sets. Kernels
/// and pool outlive it; without a pool the calling thread works alone.
std::unique_ptr<Backend> MakeCpuBackend(const cpu::Kernels& kernels, ThreadPool* pool,
                                        Precision precision);

}  // namespace foretoken
