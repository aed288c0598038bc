#pragma once

namespace furlong::race {

/// For a process that is there to run unknown kernels: no core files (they would be as large as a dataset),
/// no privileges beyond those it has. Nothing where the system has no such things.
void drop_what_a_trial_does_not_need();

/// Whether an address-space limit would kill this process rather than a greedy kernel (a sanitizer's shadow
/// memory).
bool address_space_limit_is_usable();

}  // namespace furlong::race
