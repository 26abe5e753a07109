#pragma once

#include <span>

namespace foretoken {

/// s_q, rows per sequence and pass (the root among them) by the rule of Section 3.2 of the SSSD
/// paper: I_knee / b, where `knee_rows` is the number of rows up to which a pass costs about what
/// one row costs and `batch` the number of sequences in it. Rounded down to one of 2, 3, 4, 5, 6,
/// 8, 10, 12, 16, 20, 24, 32, and never below 2. Never grows with the batch.
int SpeculationLength(int knee_rows, int batch);

/// I_knee as measured: the most rows of which a pass takes at most a quarter longer than one row,
/// where passes of `rows` rows (ascending, the first 1) take `us`; between them as on straight
/// lines. At most the last of `rows`: more were not measured.
int KneeRows(std::span<const int> rows, std::span<const double> us);

/// How deep a branch from the datastore may be where s_q rows are verified.
int BranchLength(int speculation_length);

}  // namespace foretoken
