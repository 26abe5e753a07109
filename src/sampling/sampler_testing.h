#pragma once

// For tests: a sampler, and a backend that it can work on.

#include "backend/reference_backend_testing.h"
#include "sampling/sampler.h"
