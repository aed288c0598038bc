#pragma once
// What every back end asks of a compile request before its compiler sees it.

#include "furlong/device/device.h"

namespace furlong::device {

/// `invalid` for an include folder without a name: the bare `-I` made of it would swallow the next option.
/// Thread safe.
Status check_request(const CompileRequest& request);

}  // namespace furlong::device
