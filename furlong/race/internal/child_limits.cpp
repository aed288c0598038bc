#include "furlong/race/internal/child_limits.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>

namespace furlong::race {

void drop_what_a_trial_does_not_need() {
  const rlimit none{0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
#ifdef __linux__
  (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#endif
}

bool address_space_limit_is_usable() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}

}  // namespace furlong::race
